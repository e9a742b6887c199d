"""Parts of the demo's screen."""

from collections.abc import Iterable

from rich.console import RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text


def heading(title: str) -> Iterable[RenderableType]:
    """What the lines after it are about."""
    return Text(title, style="bold underline"), Text()


def inset(content: RenderableType, above: int = 0) -> RenderableType:
    """Set in, with a blank line below."""
    return Padding(content, (above, 0, 1, 2), expand=False)


def call(expression: str, meaning: str, content: RenderableType) -> RenderableType:
    """What a call answers, and what that is."""
    return Panel(
        content,
        title=f"[bold]await {escape(expression)}[/]",
        title_align="left",
        subtitle=f"[dim]{meaning}[/]",
        subtitle_align="right",
        border_style="dim",
        padding=(1, 2),
    )
