"""Commands that run servers or consumers, such as `up`, or start a stack of their own, such as `demo`."""
