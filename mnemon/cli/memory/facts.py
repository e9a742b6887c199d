"""`mnemon save`, `read`, `search`, `get` and `update`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mnemon.cli.memory.candidates import can_ask, choose_candidate, show_candidates
from mnemon.cli.memory.requests import (
    AsOfOption,
    ExpiresOption,
    ImportanceOption,
    KindOption,
    MinSeqOption,
    TenantOption,
    TierOption,
    UserOption,
    parse_as_of,
    parse_importance,
    send_request,
)
from mnemon.cli.target import DataOption
from mnemon.cli.terminal.exit_code import Ending
from mnemon.cli.terminal.output import JsonOption
from mnemon.cli.terminal.text import make_printable

if TYPE_CHECKING:
    from mnemon_contracts.verbs.tools import (
        FactReplyV1,
        FactsReplyV1,
        GetReplyV1,
        SaveReplyV1,
        SearchReplyV2,
        UpdateReplyV2,
    )
    from mnemon_producers.client import MemoryClient


def save(
    text: Annotated[str, typer.Argument(help="The fact, one sentence.")],
    tenant: TenantOption,
    user: UserOption,
    kind: KindOption = None,
    tier: TierOption = None,
    importance: ImportanceOption = None,
    expires: ExpiresOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Save a fact, and print the decision.

    Ends with 1 when the fact is refused.

    Example: `mnemon save "Prefers trains to planes" --tenant acme --user u42 --importance high`
    """
    fact: dict[str, Any] = _fact_fields(kind, tier, importance, expires)
    send_request(
        lambda memory: memory.save(user, text, **fact),
        _show_decision,
        tenant=tenant,
        data=data,
        as_json=as_json,
        ending=_end_save,
    )


def read(
    tenant: TenantOption,
    user: UserOption,
    tier: TierOption = None,
    limit: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Show at most this many facts.  [default: all]")
    ] = None,
    min_seq: MinSeqOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List all facts by tier, one line of Markdown each.

    Example: `mnemon read --tenant acme --user u42 --tier profile`
    """
    wanted: dict[str, Any] = {"tier": tier, "min_seq": min_seq}
    send_request(
        lambda memory: (
            memory.read_all(user, **wanted) if limit is None else memory.read(user, limit=limit, **wanted)
        ),
        _show_facts,
        tenant=tenant,
        data=data,
        as_json=as_json,
    )


def search(
    query: Annotated[str, typer.Argument(help="Query, in any language.")],
    tenant: TenantOption,
    user: UserOption,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="Where to search: memories, messages, documents or summaries; or a level of "
            "memory: short, medium or long. Repeat it for several.  [default: memories; with "
            "--collection documents]"
        ),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            help="Conversation whose newest messages `short` searches and `long` leaves out.  "
            "[default: the current one]"
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, max=100, help="Show at most this many hits.  [default: `retrieval.limit` of the settings]"
        ),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out hits with a lower score, 0 to 1.")
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Search only documents of this collection.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")] = False,
    min_seq: MinSeqOption = None,
    as_of_: AsOfOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search a user's memory for a query, best hits first.

    Example: `mnemon search "train or plane?" --tenant acme --user u42 --scope memories --scope messages`
    """
    wanted: dict[str, Any] = {
        "scope": scope or None,
        "conversation": conversation,
        "collection": collection,
        "limit": limit,
        "threshold": threshold,
        "explain": explain,
        "min_seq": min_seq,
        "as_of": parse_as_of(as_of_),
    }
    send_request(
        lambda memory: memory.search(user, query, **wanted),
        _show_hits,
        tenant=tenant,
        data=data,
        as_json=as_json,
        ending=_end_search,
    )


def get(
    id_: Annotated[
        str,
        typer.Argument(metavar="ID", help="Id of the fact, message, document or summary, such as pf_001."),
    ],
    tenant: TenantOption,
    user: UserOption,
    scope: Annotated[
        str | None,
        typer.Option(
            help="Kind of the id: memories, messages, documents or summaries.  [default: the first "
            "that has it]"
        ),
    ] = None,
    offset: Annotated[
        int, typer.Option(min=0, help="For a document: first character of its text to show, from 0.")
    ] = 0,
    min_seq: MinSeqOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one fact with its former versions, or one message, document or summary, whole.

    Ends with 1 when there is none.

    Example: `mnemon get pf_001 --tenant acme --user u42`
    """
    wanted: dict[str, Any] = {"scope": scope, "offset": offset, "min_seq": min_seq}
    send_request(
        lambda memory: memory.get(user, id_, **wanted),
        _show_item,
        tenant=tenant,
        data=data,
        as_json=as_json,
        absent=f"mnemon read --tenant {tenant} --user {user}",
    )


def update(
    tenant: TenantOption,
    user: UserOption,
    id_: Annotated[str | None, typer.Argument(metavar="ID", help="Id of the fact, such as pf_001.")] = None,
    query: Annotated[str | None, typer.Option(help="Words that name the fact, instead of its id.")] = None,
    text: Annotated[str | None, typer.Option(help="The fact, one sentence.")] = None,
    kind: KindOption = None,
    tier: TierOption = None,
    importance: ImportanceOption = None,
    expires: ExpiresOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change one fact, named by its id or by words that clearly mean one fact; other fields stay as they are.

    If the words may mean several facts, the command asks which one is meant; without a terminal, or with
    --json, it shows the candidates and changes nothing.

    Ends with 1 when nothing is changed.

    Example: `mnemon update pf_001 --text "Prefers night trains" --tenant acme --user u42`
    """
    changes: dict[str, Any] = {"text": text, **_fact_fields(kind, tier, importance, expires)}

    async def question(memory: "MemoryClient") -> "UpdateReplyV2":
        reply = await memory.update(user, id_, query=query, **changes)
        if reply.candidates and can_ask(as_json):
            chosen = choose_candidate(reply.candidates, "nothing was changed")
            reply = await memory.update(user, chosen, **changes)
        return reply

    def ending(reply: "UpdateReplyV2") -> Ending:
        if reply.fact is not None:
            return Ending.DONE
        typer.echo("mnemon: nothing was changed: the query does not clearly mean one fact", err=True)
        typer.echo("  Give the id of the fact instead of --query.", err=True)
        return Ending.NOT_SO

    send_request(
        question,
        _show_change,
        tenant=tenant,
        data=data,
        as_json=as_json,
        ending=ending,
        absent=f"mnemon read --tenant {tenant} --user {user}",
    )


def _fact_fields(
    kind: str | None, tier: str | None, importance: str | None, expires: object
) -> dict[str, Any]:
    return {"kind": kind, "tier": tier, "importance": parse_importance(importance), "expires_at": expires}


def _show_decision(reply: "SaveReplyV1") -> None:
    typer.echo(f"{reply.decision}: {reply.reason if reply.decision == 'rejected' else reply.id}")


def _end_save(reply: "SaveReplyV1") -> Ending:
    return Ending.NOT_SO if reply.decision == "rejected" else Ending.DONE


def _show_facts(reply: "FactsReplyV1") -> None:
    from mnemon_contracts.fact_lines import fact_line

    for fact in reply.facts:
        typer.echo(make_printable(fact_line(fact)))
    if not reply.facts:
        typer.echo("no facts")
    if reply.next is not None:
        typer.secho(
            f"{len(reply.facts):,} of {reply.total:,} factsshown; show more with --limit", dim=True, err=True
        )


def _show_hits(reply: "SearchReplyV2") -> None:
    for hit in reply.hits:
        place = f"{hit.scope}:{hit.id}"
        if passage := hit.passage:
            place += f":{passage.first_line}-{passage.last_line}"
        typer.echo(
            f"- [{hit.score:.3f}] [{make_printable(place)}] {make_printable(' '.join(hit.text.split()))}"
        )
        if hit.parts:
            typer.secho(f"  {', '.join(f'{name} {part:.3f}' for name, part in hit.parts.items())}", dim=True)
    if not reply.hits:
        typer.echo("nothing found")


def _end_search(reply: "SearchReplyV2") -> Ending:
    if reply.degraded:
        typer.secho(f"could not be searched: {', '.join(reply.degraded)}", fg="red", err=True)
    return Ending.DONE


def _show_change(reply: "UpdateReplyV2") -> None:
    _show_fact(reply)
    show_candidates(reply.candidates)


def _show_item(reply: "GetReplyV1") -> None:
    _show_fact(reply)
    if message := reply.message:
        typer.secho(f"{message.sent_at:%Y-%m-%d %H:%M}  {message.name or message.role}  ", dim=True, nl=False)
        typer.echo(make_printable(message.content))
    if document := reply.document:
        typer.echo(make_printable(document.text))
        if document.next_offset is not None:
            rest = f"of {document.length:,} characters; continue with --offset {document.next_offset}"
            typer.secho(f"{document.offset:,} to {document.next_offset:,} {rest}", dim=True, err=True)

    if summary := reply.summary:
        covers = f"messages at positions {summary.from_seq:,} to {summary.to_seq:,} of {summary.conversation}"
        typer.secho(f"{summary.at:%Y-%m-%d %H:%M}  {make_printable(covers)}  ", dim=True, nl=False)
        typer.echo(make_printable(summary.text))


def _show_fact(reply: "FactReplyV1") -> None:
    from mnemon_contracts.fact_lines import fact_line

    if reply.fact is not None:
        typer.echo(make_printable(fact_line(reply.fact)))
    for version in reply.versions:
        typer.secho(f"  was: {make_printable(' '.join(version.text.split()))}", dim=True)
