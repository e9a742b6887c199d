"""`mnemon tasks`."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from mnemon.cli.memory.requests import MinSeqOption, TenantOption, UserOption, send_request
from mnemon.cli.target import DataOption
from mnemon.cli.terminal.output import JsonOption

if TYPE_CHECKING:
    from mnemon_contracts.verbs.tools import TasksReplyV1

app = typer.Typer(no_args_is_help=True, help="List, add, finish and remove a user's tasks.")

TaskArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the task.")]


@app.command("list")
def list_(
    tenant: TenantOption,
    user: UserOption,
    min_seq: MinSeqOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List a user's tasks, oldest first.

    Example: `mnemon tasks list --tenant acme --user u42`
    """
    send_request(
        lambda memory: memory.tasks(user, min_seq=min_seq),
        _show_tasks,
        tenant=tenant,
        data=data,
        as_json=as_json,
    )


@app.command("add")
def add(
    text: Annotated[str, typer.Argument(help="Text of the task.")],
    tenant: TenantOption,
    user: UserOption,
    due: Annotated[datetime | None, typer.Option(help="Due date or time, in UTC.")] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a task, and list all tasks.

    Example: `mnemon tasks add "Buy train tickets" --due 2026-12-01 --tenant acme --user u42`
    """
    send_request(
        lambda memory: memory.add_task(user, text, due_at=due),
        _show_tasks,
        tenant=tenant,
        data=data,
        as_json=as_json,
    )


@app.command("done")
def done(
    task_id: TaskArgument,
    tenant: TenantOption,
    user: UserOption,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Mark a task as done, and list all tasks.

    Ends with 1 when there is no such task.

    Example: `mnemon tasks done 7c9e6679 --tenant acme --user u42`
    """
    send_request(
        lambda memory: memory.finish_task(user, task_id),
        _show_tasks,
        tenant=tenant,
        data=data,
        as_json=as_json,
        absent=f"mnemon tasks list --tenant {tenant} --user {user}",
    )


@app.command("remove")
def remove(
    task_id: TaskArgument,
    tenant: TenantOption,
    user: UserOption,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a task, and list the remaining ones.

    Ends with 1 when there is no such task.

    Example: `mnemon tasks remove 7c9e6679 --tenant acme --user u42`
    """
    send_request(
        lambda memory: memory.remove_task(user, task_id),
        _show_tasks,
        tenant=tenant,
        data=data,
        as_json=as_json,
        absent=f"mnemon tasks list --tenant {tenant} --user {user}",
    )


def _show_tasks(reply: "TasksReplyV1") -> None:
    for task in reply.tasks:
        due = f" [due:{task.due_at:%Y-%m-%d}]" if task.due_at else ""
        typer.echo(f"- [{'x' if task.done else ' '}] [id:{task.task_id}]{due} {' '.join(task.text.split())}")
    if not reply.tasks:
        typer.echo("no tasks")
