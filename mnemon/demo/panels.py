"""Parts of the demo's screen."""

from collections.abc import Iterable

from rich.console import RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text


def render_heading(title: str) -> Iterable[RenderableType]:
    """Return a heading with a blank line below."""
    return Text(title, style="bold underline"), Text()


def indent(content: RenderableType, above: int = 0) -> RenderableType:
    """Indent content, with a blank line below and `above` blank lines above."""
    return Padding(content, (above, 0, 1, 2), expand=False)


def render_call(expression: str, meaning: str, content: RenderableType) -> RenderableType:
    """Return a panel with a call as title, its reply as content, and the meaning of the reply below."""
    return Panel(
        content,
        title=f"[bold]await {escape(expression)}[/]",
        title_align="left",
        subtitle=f"[dim]{meaning}[/]",
        subtitle_align="right",
        border_style="dim",
        padding=(1, 2),
    )
