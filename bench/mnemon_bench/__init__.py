"""Benchmarks: most compare mnemon with a bare loop in the same run, interleaved, and report medians.

A bench is a module with the function `run`. A parameter has the same meaning in every bench, unless its
`run` says otherwise. `deployment`: an empty stack, already provisioned and migrated. `rounds`: number of
measurements of each case; the figures are medians over the rounds, unless the result says otherwise.
`requests`: requests per measurement, over all callers. `report`: called with lines about the progress.
"""
