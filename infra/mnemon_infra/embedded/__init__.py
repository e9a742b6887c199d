"""Real servers from wheels, in one folder: no container engine, no root."""
