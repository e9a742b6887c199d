"""HTTP gateway for programs without NATS: routes below `/v1`, `/mcp`, the proxy and probes."""
