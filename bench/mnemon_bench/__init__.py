"""Benchmarks: many compare mnemon with a bare loop or an echo, interleaved in one run, and report medians.

A bench is a module with the function `run`. These parameters have the same meaning in every bench, unless its
`run` says otherwise:

- `deployment`: an empty stack, already provisioned and migrated.
- `rounds`: number of measurements of each case; the figures are medians over the rounds, unless the result
  says otherwise.
- `requests`: number of requests of a measurement, of all callers together.
- `report`: called with lines about the progress.
"""
