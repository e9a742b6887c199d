"""Commands `mnemon save`, `read`, `search`, `get`, `update` and `forget`."""

import re
from contextlib import asynccontextmanager, suppress
from datetime import UTC
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from mnemon.cli.memory.requests import (
    AsOfOption,
    ExpiresOption,
    ImportanceOption,
    KindOption,
    MemoryRequest,
    MinSeqOption,
    NowOption,
    PrecedingOption,
    TierOption,
    parse_as_of,
    parse_importance,
    parse_now,
)
from mnemon.cli.options.option_group import expand_options
from mnemon.cli.terminal.exit_code import ExitCode, refuse
from mnemon.cli.terminal.prompt import ask_question, can_ask
from mnemon.display_text import format_count, make_printable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import datetime

    from mnemon_contracts.verbs.tools import (
        FactCandidate,
        FactReplyV1,
        FactsReplyV1,
        ForgetReplyV1,
        GetReplyV1,
        SaveReplyV1,
        SaveV1,
        SearchReplyV2,
        UpdateReplyV2,
    )
    from mnemon_producers.client import MemoryClient


MOST_CANDIDATES: Final = 5
"""Maximum number of facts to show if no fact has the given id."""

NO_CANDIDATE: Final = 0
"""Number that rejects all candidates."""

_FACT_ID: Final = re.compile(r"[A-Za-z]+_[0-9]+")

_MISSING_MODELS: Final = {
    "embedding": "searched by words only: the query could not be embedded",
    "reranker": "hits not reranked: the reranker gave no usable answer",
}
"""Values of `degraded` that are not scopes, each with its effect on the reply."""


@expand_options
def save(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text of the fact, one sentence.")],
    request: MemoryRequest,
    kind: KindOption = None,
    tier: TierOption = None,
    importance: ImportanceOption = None,
    expires: ExpiresOption = None,
) -> None:
    """Save a fact, and print the decision.

    Exits with code 1 if the decision is `rejected`, or the request is refused.

    Example: `mnemon save "Prefers trains to planes" --tenant acme --user u42 --importance high`
    """
    fact: dict[str, Any] = _collect_fact_fields(kind, tier, importance, expires)
    request.send(
        lambda memory: memory.save(request.user, text, **fact),
        _show_decision,
        conclude=_conclude_save,
    )


@expand_options
def read(
    request: MemoryRequest,
    tier: Annotated[
        str | None,
        typer.Option(help="List only facts of this tier: profile, working or archive. Default: all tiers."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Maximum number of facts to list. Default: all facts.")
    ] = None,
    min_seq: MinSeqOption = None,
) -> None:
    """List a user's facts by tier, each as a line of Markdown.

    Example: `mnemon read --tenant acme --user u42 --tier profile`
    """
    wanted: dict[str, Any] = {"tier": tier, "min_seq": min_seq}
    request.send(
        lambda memory: (
            memory.read_all(request.user, **wanted)
            if limit is None
            else memory.read(request.user, limit=limit, **wanted)
        ),
        _show_facts,
    )


@expand_options
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Text to search for, in any language.")],
    request: MemoryRequest,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="Scope to search: memories, messages, documents or summaries; or a level of "
            "memory: short, medium or long. Repeat the option for several scopes. Default: "
            "memories; with --collection: documents."
        ),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            help="Conversation whose newest messages `short` searches and `long` leaves out. "
            "Default: the current conversation."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Maximum number of hits. Default: the setting `retrieval.limit`."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Minimum score of a hit, 0 to 1. Default: the setting `retrieval.threshold`. If neither is "
            "set, messages that probably do not answer a question are left out, and other items with less "
            "than a quarter of the best score of their scope, unless a reranker scored them; 0 shows them.",
        ),
    ] = None,
    collection: Annotated[
        str | None, typer.Option(help="Search only documents of this collection. Default: no restriction.")
    ] = None,
    preceding: PrecedingOption = None,
    now: NowOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each hit's score.")] = False,
    min_seq: MinSeqOption = None,
    as_of_: AsOfOption = None,
) -> None:
    """Search a user's memory for a query, best hits first.

    If nothing is found, the command says whether the user has neither facts nor messages, or whether messages
    exist and only facts were searched. It does not say so with --json or --as-of.

    Exits with code 1 if nothing is found, or with code 3 if nothing is found and a scope could not be
    searched.

    Example: `mnemon search "train or plane?" --tenant acme --user u42 --scope memories --scope messages`
    """
    if not query.strip():
        refuse(ExitCode.USAGE_ERROR, "the query is empty", "Give the words to search for")
    wanted: dict[str, Any] = {
        "scope": scope or None,
        "conversation": conversation,
        "collection": collection,
        "limit": limit,
        "threshold": threshold,
        "explain": explain,
        "preceding": preceding or (),
        "now": parse_now(now),
        "min_seq": min_seq,
        "as_of": parse_as_of(as_of_),
    }
    next_step = ""

    async def send_query(memory: "MemoryClient") -> "SearchReplyV2":
        nonlocal next_step
        reply = await memory.search(request.user, query, **wanted)
        if not (reply.hits or _list_unsearched(reply) or request.as_json or as_of_):
            next_step = await _suggest_after_miss(memory, request, only_facts=not (scope or collection))
        return reply

    def conclude_query(reply: "SearchReplyV2") -> ExitCode:
        if next_step:
            typer.echo(f"  {next_step}", err=True)
        return _conclude_search(reply)

    request.send(send_query, _show_hits, conclude=conclude_query)


@expand_options
def get(
    id_: Annotated[
        str,
        typer.Argument(metavar="ID", help="Id of the fact, message, document or summary, such as pf_001."),
    ],
    request: MemoryRequest,
    scope: Annotated[
        str | None,
        typer.Option(
            help="Scope of the id: memories, messages, documents or summaries. Default: the first "
            "of these that has the id."
        ),
    ] = None,
    offset: Annotated[
        int, typer.Option(min=0, help="For a document: offset of the first character to show, from 0.")
    ] = 0,
    min_seq: MinSeqOption = None,
) -> None:
    """Show one fact with its former versions, or one message, document or summary, whole.

    A document of more than 100,000 characters is shown in parts; --offset continues.

    Exits with code 1 if nothing has the id.

    Example: `mnemon get pf_001 --tenant acme --user u42`
    """
    wanted: dict[str, Any] = {"scope": scope, "offset": offset, "min_seq": min_seq}
    is_fact = scope == "memories" or (scope is None and _FACT_ID.fullmatch(id_))
    documents = f"List the documents: mnemon document list {request.options}"
    request.send(
        lambda memory: memory.get(request.user, id_, **wanted),
        _show_item,
        list_command="read" if scope in (None, "memories") else "",
        alternative="" if is_fact or scope in ("messages", "summaries") else documents,
    )


@expand_options
def update(
    context: typer.Context,
    request: MemoryRequest,
    id_: Annotated[str | None, typer.Argument(metavar="ID", help="Id of the fact, such as pf_001.")] = None,
    query: Annotated[
        str | None, typer.Option(help="Words that clearly mean one fact, in place of ID. Default: none.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="New text of the fact, one sentence. Default: unchanged.")
    ] = None,
    kind: KindOption = None,
    tier: TierOption = None,
    importance: ImportanceOption = None,
    expires: ExpiresOption = None,
) -> None:
    """Change one fact, named by its id or by words that clearly mean one fact.

    Other fields stay as they are, except the date of expiry, which a new text or tier may change.

    If the words may mean several facts, the command asks which fact you mean; without a terminal, or with
    --json, the command shows the candidates and changes nothing. If no fact has the id, the command searches
    for the given text and shows the facts that it finds, except with --json.

    Exits with code 1 if no fact has the id, the words do not clearly mean one fact, or the change is refused;
    and with code 0 if the fact already is as requested.

    Example: `mnemon update pf_001 --text "Prefers night trains" --tenant acme --user u42`
    """
    further, named = context.args, id_
    if query is not None and id_ and not _FACT_ID.fullmatch(id_):
        further, named = [id_, *context.args], None
    if further and text is None:
        given = " ".join(further)
        next_step = f"Give it as --text {quote(given)}. {_suggest_query(named)}"
        refuse(ExitCode.USAGE_ERROR, "the new text of a fact is an option", next_step.rstrip())
    if further and text is not None:
        if query is not None and " " in text:
            _require_whole_query(query, further)
        _require_whole_text(text, named, further)
    _require_one_word(id_, context.args)
    changes: dict[str, Any] = {"text": text, **_collect_fact_fields(kind, tier, importance, expires)}

    async def send_change(memory: "MemoryClient") -> "UpdateReplyV2":
        async with _show_facts_if_absent(memory, request, id_):
            reply = await memory.update(request.user, id_, query=query, **changes)
        if reply.candidates and can_ask(as_json=request.as_json):
            chosen = await choose_candidate(reply.candidates, "nothing was changed")
            reply = await memory.update(request.user, chosen, **changes)
        return reply

    def conclude_change(reply: "UpdateReplyV2") -> ExitCode:
        if reply.fact is not None:
            return ExitCode.DONE
        typer.echo("mnemon: nothing was changed: the query does not clearly mean one fact", err=True)
        wanted = _spell_changes(text, kind, tier, importance, expires)
        command = f"mnemon update {reply.candidates[0].id}{wanted} {request.options}"
        typer.echo(f"  Change one by its id: {command}", err=True)
        return ExitCode.NEGATIVE_RESULT

    request.send(
        send_change,
        _show_change,
        conclude=conclude_change,
        list_command="read",
        alternative=_suggest_query(id_),
    )


@expand_options
def forget(
    context: typer.Context,
    request: MemoryRequest,
    id_: Annotated[str | None, typer.Argument(metavar="ID", help="Id of the fact, such as pf_001.")] = None,
    query: Annotated[
        str | None, typer.Option(help="Words that clearly mean one fact, in place of ID. Default: none.")
    ] = None,
) -> None:
    """Forget one fact, named by its id or by words that clearly mean one fact.

    If the words may mean several facts, the command asks which fact you mean; without a terminal, or with
    --json, the command shows the candidates and removes nothing. If no fact has the id, the command searches
    for the given text and shows the facts that it finds, except with --json. After a removal, the command
    prints the `mnemon save` command that restores the fact under a new id, unless the fact has expired or
    --json is given.

    Exits with code 1 if nothing is removed.

    Example: `mnemon forget pf_001 --tenant acme --user u42`
    """
    if query is not None and id_ and not _FACT_ID.fullmatch(id_):
        _require_whole_query(query, [id_, *context.args])
    _require_one_word(id_, context.args)

    async def send_removal(memory: "MemoryClient") -> "ForgetReplyV1":
        async with _show_facts_if_absent(memory, request, id_):
            reply = await memory.forget(request.user, id_, query=query)
        if reply.candidates and can_ask(as_json=request.as_json):
            chosen = await choose_candidate(reply.candidates, "nothing was forgotten")
            reply = await memory.forget(request.user, chosen)
        return reply

    def show_removal(reply: "ForgetReplyV1") -> None:
        if reply.id is None:
            show_candidates(reply.candidates)
            return
        typer.echo(f"forgotten: {reply.id} {make_printable(reply.text or '')}")
        if reply.restore is not None:
            typer.secho(f"  to restore it: {spell_restore_command(reply.restore, request.options)}", dim=True)

    def conclude_removal(reply: "ForgetReplyV1") -> ExitCode:
        if reply.id is not None:
            return ExitCode.DONE
        typer.echo("mnemon: nothing was forgotten: the query does not clearly mean one fact", err=True)
        typer.echo(
            f"  Forget one by its id: mnemon forget {reply.candidates[0].id} {request.options}", err=True
        )
        return ExitCode.NEGATIVE_RESULT

    request.send(
        send_removal,
        show_removal,
        conclude=conclude_removal,
        list_command="read",
        alternative=_suggest_query(id_),
    )


def _suggest_query(id_: str | None) -> str:
    """Return the next step for words that were given in place of an id; an empty string for an id or None."""
    if not id_ or _FACT_ID.fullmatch(id_):
        return ""
    return f"To name the fact by its words, replace the id: --query {quote(id_)}"


def _require_whole_query(query: str, further: "Sequence[str]") -> NoReturn:
    """End a command whose further words belong to its --query, which has no quotation marks."""
    rest = " ".join(further)
    next_step = f"Put the words in quotation marks: --query {quote(f'{query} {rest}')}"
    refuse(ExitCode.USAGE_ERROR, f"the value of --query ends before {rest!r}", next_step)


def _require_whole_text(text: str, id_: str | None, further: "Sequence[str]") -> None:
    """End a command whose further words belong to its --text, which has no quotation marks.

    Return if the words belong to the id: the text has quotation marks, and the id is not the id of a fact.
    """
    if " " in text and id_ and not _FACT_ID.fullmatch(id_):
        return
    rest = " ".join(further)
    next_step = f"Put the text in quotation marks: --text {quote(f'{text} {rest}')}. {_suggest_query(id_)}"
    refuse(ExitCode.USAGE_ERROR, f"the value of --text ends before {rest!r}", next_step.rstrip())


def _require_one_word(id_: str | None, further: "Sequence[str]") -> None:
    """End a command that got further words after the id."""
    if further:
        given = " ".join(filter(None, (id_, *further)))
        is_id = id_ is not None and _FACT_ID.fullmatch(id_)
        next_step = f"Name one fact per command: {id_}" if is_id else _suggest_query(given)
        refuse(ExitCode.USAGE_ERROR, f"an id is one word, not {given!r}", next_step)


@asynccontextmanager
async def _show_facts_if_absent(
    memory: "MemoryClient", request: MemoryRequest, id_: str | None
) -> "AsyncIterator[None]":
    """Show the facts that a search finds for an id, if the block fails because no fact has this id.

    The user may have given words of a fact as its id. With --json, nothing is shown. The error propagates.
    """
    from mnemon_contracts.verbs.tools import FactCandidate
    from mnemon_producers.errors import AskFailed

    try:
        yield
    except AskFailed as failed:
        if id_ and failed.error.code == "not_found" and not request.as_json:
            with suppress(AskFailed):
                found = await memory.search(request.user, id_, limit=MOST_CANDIDATES)
                show_candidates(
                    [FactCandidate(id=hit.id, text=hit.text, score=hit.score) for hit in found.hits]
                )
        raise


def _spell_changes(
    text: str | None,
    kind: str | None,
    tier: str | None,
    importance: str | None,
    expires: "datetime | None",
) -> str:
    """Return the options of a change, for a suggested command; each begins with a space."""
    if expires is not None and expires.tzinfo is not None:
        expires = expires.astimezone(UTC)
    until = None if expires is None else f"{expires:%Y-%m-%dT%H:%M:%S}"
    given = {"text": text, "kind": kind, "tier": tier, "importance": importance, "expires": until}
    return "".join(f" --{name} {quote(value)}" for name, value in given.items() if value is not None)


def _collect_fact_fields(
    kind: str | None, tier: str | None, importance: str | None, expires: object
) -> dict[str, Any]:
    return {"kind": kind, "tier": tier, "importance": parse_importance(importance), "expires_at": expires}


def _show_decision(reply: "SaveReplyV1") -> None:
    typer.echo(f"{reply.decision}: {reply.reason if reply.decision == 'rejected' else reply.id}")


def _conclude_save(reply: "SaveReplyV1") -> ExitCode:
    return ExitCode.NEGATIVE_RESULT if reply.decision == "rejected" else ExitCode.DONE


def _show_facts(reply: "FactsReplyV1") -> None:
    from mnemon_contracts.fact_lines import format_fact_line

    for fact in reply.facts:
        typer.echo(make_printable(format_fact_line(fact)))
    if not reply.facts:
        typer.echo("no facts")
    if reply.next is not None:
        typer.secho(
            f"{len(reply.facts):,} of {reply.total:,} facts shown; show more with --limit", dim=True, err=True
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


async def _suggest_after_miss(memory: "MemoryClient", request: MemoryRequest, *, only_facts: bool) -> str:
    """Return the next step after a search that found nothing; an empty string if there is no next step."""
    from mnemon_producers.errors import AskFailed

    with suppress(AskFailed):
        messages = (await memory.status(request.user)).messages
        if messages and only_facts:
            stored = format_count(messages, "message", "is")
            return f"Only facts were searched, and {stored} stored; add --scope messages"
        if not messages and not (await memory.read(request.user, limit=1)).facts:
            return (
                f"User {request.user!r} of tenant {request.tenant!r} has neither facts nor messages. "
                "Check the spelling: ids are the ones that bots use"
            )
    return ""


def _list_unsearched(reply: "SearchReplyV2") -> list[str]:
    """Return the scopes that could not be searched."""
    return [part for part in reply.degraded if part not in _MISSING_MODELS]


def _conclude_search(reply: "SearchReplyV2") -> ExitCode:
    if scopes := _list_unsearched(reply):
        typer.secho(f"could not be searched: {', '.join(scopes)}", fg="red", err=True)
    for part, effect in _MISSING_MODELS.items():
        if part in reply.degraded:
            typer.secho(effect, fg="red", err=True)
    if reply.hits:
        return ExitCode.DONE
    return ExitCode.UNAVAILABLE if scopes else ExitCode.NEGATIVE_RESULT


def _show_change(reply: "UpdateReplyV2") -> None:
    _show_fact(reply)
    show_candidates(reply.candidates)


def _show_item(reply: "GetReplyV1") -> None:
    _show_fact(reply)
    if message := reply.message:
        speaker = make_printable(message.name or message.role)
        typer.secho(f"{message.sent_at:%Y-%m-%d %H:%M}  {speaker}  ", dim=True, nl=False)
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
    from mnemon_contracts.fact_lines import format_fact_line

    if reply.fact is not None:
        typer.echo(make_printable(format_fact_line(reply.fact)))
    for version in reply.versions:
        typer.secho(f"  was: {make_printable(' '.join(version.text.split()))}", dim=True)


def spell_restore_command(restore: "SaveV1", options: str) -> str:
    """Return the command that saves a fact again; `options` name the tenant and the user."""
    parts = [
        options,
        f"--kind {restore.kind}",
        f"--tier {restore.tier}",
        f"--importance {restore.importance}",
    ]
    if restore.expires_at is not None:
        parts.append(f"--expires {restore.expires_at:%Y-%m-%dT%H:%M:%S}")
    # `--` keeps a text that begins with a dash from being an option.
    return f"mnemon save {' '.join(parts)} -- {quote(make_printable(restore.text))}"


async def choose_candidate(candidates: "Sequence[FactCandidate]", message: str) -> str:
    """Ask which fact is meant and return its id; if none is meant, print `message` and end the command."""
    answers: dict[str, str | None] = {"": None, str(NO_CANDIDATE): None}
    for number, candidate in enumerate(candidates, 1):
        typer.echo(f"{number:>3}  {candidate.id}  {make_printable(candidate.text)}", err=True)
        answers[str(number)] = candidate.id
    question = f"Which fact do you mean? 1 to {len(candidates)}, or {NO_CANDIDATE} for none [{NO_CANDIDATE}]"
    answer = await ask_question(question)
    while answer not in answers:
        answer = await ask_question(question)
    chosen = answers[answer]
    if chosen is None:
        refuse(ExitCode.NEGATIVE_RESULT, message)
    return chosen


def show_candidates(candidates: "Sequence[FactCandidate]") -> None:
    """Print each candidate with its score, its id and its text, best first."""
    for candidate in candidates:
        typer.echo(
            f"- [{candidate.score:.3f}] [{candidate.id}] {make_printable(' '.join(candidate.text.split()))}"
        )
