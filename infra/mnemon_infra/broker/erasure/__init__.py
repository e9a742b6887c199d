"""Erasure in the streams: its scope, and the removal of the messages in the scope."""
