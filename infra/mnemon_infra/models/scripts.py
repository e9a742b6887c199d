"""Characters of scripts that do not separate all words and suffixes by spaces."""

import re
from typing import Final

HAN: Final = r"\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters, as ranges in a class of a regular expression."""

UNSPACED_CHARACTER: Final = rf"[{HAN}\u3040-\u30ff\uac00-\ud7a3\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
"""Pattern of a character of a script that does not separate all words and suffixes by spaces.

These are Chinese, Japanese, Korean, Thai, Lao, Burmese and Khmer.
"""

UNSPACED: Final = re.compile(f"{UNSPACED_CHARACTER}+")
"""Pattern of a run of characters that match `UNSPACED_CHARACTER`."""
