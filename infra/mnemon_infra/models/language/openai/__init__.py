"""Models of OpenAI and compatible servers."""
