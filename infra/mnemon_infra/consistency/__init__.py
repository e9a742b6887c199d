"""Checks that the log, the rows, the vectors and the clocks agree."""
