"""Program that optimises a shard that no other process has open.

The program runs as a process of its own because the engine never releases the GIL: within a consumer process,
an optimisation would block all other work for seconds.
"""

import os
import sys

from qdrant_edge import EdgeShard


def main(folder: str) -> None:
    """Optimise the shard in a folder, at the lowest priority of the operating system."""
    os.nice(19)
    shard = EdgeShard.load(folder)
    shard.optimize()
    shard.flush()
    shard.close()


if __name__ == "__main__":
    main(sys.argv[1])
