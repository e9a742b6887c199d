"""Names of consumers on the command line."""

from collections.abc import Sequence

from mnemon.cli.terminal.exit_code import Ending, refuse


def parse_consumers(names: Sequence[str]) -> tuple[str, ...]:
    """Return the named consumers, each once, in the order given; end the command if one is unknown."""
    from mnemon_consumers.app import CONSUMERS

    chosen = tuple(dict.fromkeys(name for name in names if name))
    unknown = [name for name in chosen if name not in CONSUMERS]
    if unknown or not chosen:
        problem = f"there is no consumer {unknown[0]!r}" if unknown else "no consumer is given"
        refuse(Ending.WRONG_USE, problem, f"Choose from: {', '.join(CONSUMERS)}")
    return chosen
