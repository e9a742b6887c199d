"""NATS: connections, streams and consumers, the outcomes of deliveries, and the answering of requests.

Functions that take a connection or a `JetStreamContext` raise `nats.errors.Error` if the server does not
answer. A docstring names this error only if it has a further cause, such as a refused change.
"""
