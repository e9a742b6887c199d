"""NATS: connections, streams and consumers, the outcomes of deliveries, and the answering of requests.

Functions that take a connection or a `JetStreamContext` raise `nats.errors.Error` if the server does not
answer, even if their docstrings do not name this error.
"""
