"""`python -m mnemon_bench.provider_server`: prints its address, then serves until it is ended."""

import argparse

from mnemon_bench.provider_server.server import ProviderServer
from mnemon_bench.provider_server.state import ProviderState


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="python -m mnemon_bench.provider_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--key", help="the key that is right; left out: any is")
    parser.add_argument("--seconds", type=float, default=0, help="that a model takes to answer")
    parser.add_argument("--polls", type=int, default=2, help="that a batch takes to end")
    parser.add_argument("--no-batches", action="store_true", help="as Ollama is")
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
