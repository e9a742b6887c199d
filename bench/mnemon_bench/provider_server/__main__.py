"""Serve the wire formats of the providers of language models, for tests and benchmarks."""

import argparse

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_bench.provider_server.state import ProviderState


def main() -> None:
    """Print `ready: <address>`, and serve until killed."""
    parser = argparse.ArgumentParser(prog="python -m mnemon_bench.provider_server", description=__doc__)
    parser.add_argument(
        "--port", type=int, default=0, help="Port to listen on, at 127.0.0.1. Default: 0, a free port."
    )
    parser.add_argument("--key", help="API key that requests must have. Default: any key is accepted.")
    parser.add_argument(
        "--seconds",
        type=float,
        default=0,
        help="Seconds that the model takes for each answer outside of batches. Default: 0.",
    )
    parser.add_argument(
        "--polls",
        type=int,
        default=2,
        help="Number of polls that report a batch as running; the next poll ends the batch. Default: 2.",
    )
    parser.add_argument(
        "--no-batches", action="store_true", help="Serve no batches, as Ollama does. Default: serve batches."
    )
    arguments = parser.parse_args()
    state = ProviderState(
        key=arguments.key,
        seconds=arguments.seconds,
        polls=arguments.polls,
        has_batches=not arguments.no_batches,
    )
    with ProviderServer(state, arguments.port) as server:
        print(f"ready: {server.url}", flush=True)
        server.wait()


if __name__ == "__main__":
    main()
