"""NATS: connections, streams and consumers, how a message ends, and how a request is answered."""
