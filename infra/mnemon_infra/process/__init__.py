"""Conditions of one process: cancellation, faults, and the priority of requests."""
