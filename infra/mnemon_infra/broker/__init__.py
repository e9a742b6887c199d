"""NATS: connections, streams and consumers, the outcomes of deliveries, and the answering of requests."""
