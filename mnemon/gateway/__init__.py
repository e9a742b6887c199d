"""HTTP gateway for programs without NATS: routes for events and verbs, `/mcp`, and the proxy."""
