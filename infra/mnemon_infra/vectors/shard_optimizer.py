"""A program of its own: sort and index the points of a shard that nobody else has open.

In the process of the consumers it would stop everything for seconds: the engine never lets go of the
interpreter's lock.
"""

import os
import sys

from qdrant_edge import EdgeShard


def main(folder: str) -> None:
    os.nice(19)
    shard = EdgeShard.load(folder)
    shard.optimize()
    shard.flush()
    shard.close()


if __name__ == "__main__":
    main(sys.argv[1])
