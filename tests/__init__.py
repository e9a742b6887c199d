"""The processes of the tests keep the bytecode they compile: else every start of `mnemon` compiles it all.

Where the shell forbids bytecode beside the sources, it is kept in the cache of pytest.
"""

import os
import sys
from pathlib import Path

_KEPT = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"

if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(_KEPT)
    sys.dont_write_bytecode = False
