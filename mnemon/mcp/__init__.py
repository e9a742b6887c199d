"""Memory for clients of the Model Context Protocol: tools, the context as a resource, and a prompt."""
