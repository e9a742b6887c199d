"""Command `mnemon tasks`: list, add, finish and remove tasks of a user."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.memory.requests import MemoryRequest, MinSeqOption
from mnemon.cli.options.option_group import expand_options
from mnemon.display_text import make_printable

if TYPE_CHECKING:
    from mnemon_contracts.verbs.tools import TasksReplyV1

app = typer.Typer(no_args_is_help=True, help="List, add, finish and remove a user's tasks.")

TaskArgument = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the task, as `mnemon tasks list` shows it.")
]


@app.command("list")
@expand_options
def list_(
    request: MemoryRequest,
    min_seq: MinSeqOption = None,
) -> None:
    """List a user's tasks, oldest first.

    Example: `mnemon tasks list --tenant acme --user u42`
    """
    request.send(lambda memory: memory.tasks(request.user, min_seq=min_seq), _show_tasks)


@app.command("add")
@expand_options
def add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text of the task.")],
    request: MemoryRequest,
    due: Annotated[
        datetime | None,
        typer.Option(
            help="Time at which the task is due, in UTC, such as 2026-12-01 or 2026-12-01T18:00:00. "
            "Default: none."
        ),
    ] = None,
) -> None:
    """Add a task, and list all tasks.

    Example: `mnemon tasks add "Buy train tickets" --due 2026-12-01 --tenant acme --user u42`
    """
    request.send(lambda memory: memory.add_task(request.user, text, due_at=due), _show_tasks)


@app.command("done")
@expand_options
def done(
    task_id: TaskArgument,
    request: MemoryRequest,
) -> None:
    """Mark a task as done, and list all tasks.

    Exits with code 1 if no task has the id.

    Example: `mnemon tasks done 7c9e6679-7425-40de-944b-e07fc1f90ae7 --tenant acme --user u42`
    """
    request.send(
        lambda memory: memory.finish_task(request.user, task_id),
        _show_tasks,
        list_command="tasks list",
    )


@app.command("remove")
@expand_options
def remove(
    task_id: TaskArgument,
    request: MemoryRequest,
) -> None:
    """Remove a task, and list the remaining ones.

    Exits with code 1 if no task has the id.

    Example: `mnemon tasks remove 7c9e6679-7425-40de-944b-e07fc1f90ae7 --tenant acme --user u42`
    """
    request.send(
        lambda memory: memory.remove_task(request.user, task_id),
        _show_tasks,
        list_command="tasks list",
    )


def _show_tasks(reply: "TasksReplyV1") -> None:
    for task in reply.tasks:
        due = f" [due:{task.due_at:%Y-%m-%d}]" if task.due_at else ""
        line = f"- [{'x' if task.done else ' '}] [id:{task.task_id}]{due} {' '.join(task.text.split())}"
        typer.echo(make_printable(line))
    if not reply.tasks:
        typer.echo("no tasks")
