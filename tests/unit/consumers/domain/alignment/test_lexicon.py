"""Lists of words: the rules of alignment and the files of the lexicon name the same lists."""

import re
from pathlib import Path

from mnemon_consumers.domain import alignment
from mnemon_consumers.domain.alignment.lexicon import load_lexicon

NAMED = re.compile(r"\"(\w+)\"")
USED = re.compile(r"list_words\(\"(\w+)\"\)|has_word_of\(\"(\w+)\"\)")


def test_rules_and_documents_have_the_same_lists() -> None:
    paths = Path(alignment.__file__).parent.rglob("*.py")
    sources = "".join(path.read_text(encoding="utf-8") for path in paths)
    lists = load_lexicon().word_lists.keys()
    used = {name for names in USED.findall(sources) for name in names if name}
    assert used <= lists
    assert lists <= set(NAMED.findall(sources))
