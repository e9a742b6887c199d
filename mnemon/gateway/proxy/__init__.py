"""Drop-in proxy: requests of OpenAI's and Anthropic's clients get memory on their way to the provider."""
