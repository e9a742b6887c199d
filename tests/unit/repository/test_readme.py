"""Links of README.md lead to files and headings that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_link_has_its_file_and_heading() -> None:
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", README) if "://" not in link]
    assert len(links) > 10
    for path, _, anchor in (link.partition("#") for link in links):
        assert (ROOT / path).exists(), path
        if anchor:
            assert anchor in headings(ROOT / path), f"{path}#{anchor}"


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}
