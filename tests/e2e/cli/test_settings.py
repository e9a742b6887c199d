"""`mnemon settings`: its output, its refusals, and the effect of a change on a running process."""

import asyncio
import json
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from mnemon_contracts.settings.document import DEFAULTS, flatten_document
from tests.support.processes.stack import TIMEOUT, CommandResult, Up, mnemon


class SettingsCommands:
    """`mnemon settings` with the given NATS server."""

    def __init__(self, nats_url: str) -> None:
        self._nats_url = nats_url

    async def __call__(self, *arguments: str) -> CommandResult:
        return await mnemon("settings", *arguments, MNEMON_NATS_URL=self._nats_url)

    async def json(self, *arguments: str) -> Any:
        found = await self(*arguments, "--json")
        assert found.code == 0, found
        return json.loads(found.out)

    async def done(self, *arguments: str) -> int:
        """Run a command that changes settings, and return the revision that it prints."""
        found = await self(*arguments)
        assert found.code == 0, found
        assert found.out.startswith("in force as revision ")
        return int(found.out.split()[-1])


@pytest.fixture
def settings(nats_url: str, connection: Client) -> SettingsCommands:
    return SettingsCommands(nats_url)


async def test_history_without_revisions_is_no_empty_table(settings: SettingsCommands) -> None:
    assert await settings.json("history") == []
    assert (await settings("history")).out == "no revisions: all settings have their defaults\n"
    of_tenant = await settings("history", "--tenant", "acme")
    assert of_tenant.out == "no revisions: the general settings apply to this tenant\n"


async def test_setting_reaches_a_running_process(shared: Up) -> None:
    assert shared.endpoints
    settings = SettingsCommands(shared.endpoints.nats)
    async with await nats.connect(shared.endpoints.nats) as client:
        for number in range(5):
            body = json.dumps({"role": "user", "content": str(number)}).encode()
            for tenant in ("told", "untold"):
                said = await client.request(f"chat.{tenant}.u1.-.message.v1", body, timeout=60)
        seen = json.dumps({"min_seq": json.loads(said.data)["seq"]}).encode()

        async def shown(tenant: str) -> str:
            """Return the text that the context puts before the content of the newest message."""
            reply = await client.request(f"ask.{tenant}.u1.context.v1", seen, timeout=60)
            messages = json.loads(reply.data)["messages"]
            newest = [each["content"] for each in messages if each["role"] == "user"][-1]
            assert newest.endswith("4")
            return str(newest[:-1])

        async def until(tenant: str, stamp: str) -> None:
            async with asyncio.timeout(TIMEOUT):
                while await shown(tenant) != stamp:
                    pass

        assert await shown("told") not in ("a ", "b ")
        try:
            for stamp in ("a ", "b "):
                await settings.done("set", f'time_stamps.template="{stamp}{{text}}"')
                await until("told", stamp)

            await settings.done("set", "--tenant", "told", 'time_stamps.template="c {text}"')
            await until("told", "c ")
            assert await shown("untold") == "b "

            await settings.done("unset", "--tenant", "told", "time_stamps.template")
            await until("told", "b ")
        finally:  # other tests use the same stack
            await settings.done("unset", "time_stamps")


async def test_setting_is_set_read_and_unset(settings: SettingsCommands) -> None:
    assert flatten_document(await settings.json("get")) == DEFAULTS
    await settings.done("set", "recent_messages=3", "time_stamps.zone=Europe/Moscow", "embedding.model=null")
    await settings.done("set", "limits.per_user=60", 'time_stamps.template="{text}"', "--tenant", "акме 1")
    table = [line.split() for line in (await settings("get", "--tenant", "акме 1")).out.splitlines()]
    assert table[0] == ["setting", "value", "default", "from"]
    assert {row[0] for row in table[1:]} >= DEFAULTS.keys()
    assert ["recent_messages", "3", "10", "set"] in table
    assert ["limits.per_user", "60", "500", "tenant"] in table
    assert ["limits.profile", "50", "50", "default"] in table

    chosen = await settings.json("get", "limits.per_user", "time_stamps", "--tenant", "акме 1")
    assert chosen["limits"] == {"per_user": 60}
    assert chosen["time_stamps"]["zone"] == "Europe/Moscow"
    assert chosen.keys() == {"limits", "time_stamps"}

    await settings.done("unset", "limits", "recent_messages", "--tenant", "акме 1")
    await settings.done("unset", "time_stamps.zone")
    assert flatten_document(await settings.json("get", "--tenant", "акме 1")) == {
        **DEFAULTS,
        "recent_messages": 3,
        "time_stamps.template": "{text}",
    }


async def test_settings_command_without_effect_says_that_nothing_was_changed(
    settings: SettingsCommands,
) -> None:
    assert (await settings("unset", "limits.per_user")).out == "nothing was changed\n"
    revision = await settings.done("set", "recent_messages=3")
    for arguments in ("set", "recent_messages=3"), ("rollback", str(revision)):
        assert (await settings(*arguments)).out == "nothing was changed\n"
    assert await settings.json("unset", "limits.per_user") == {"revision": None}


async def test_invalid_setting_is_named_and_changes_nothing(settings: SettingsCommands) -> None:
    for arguments, named in (
        (("set", "recent_messages=true"), "recent_messages: "),
        (("set", "policy.min_length=300"), "policy.max_length: 240 is less than min_length, which is 300"),
        (("set", "limit.per_user=5", "--tenant", "acme"), "is not a setting; did you mean limits.per_user"),
        (("set", "recent_messages="), "mnemon settings unset recent_messages"),
        (("set", "recent_messages=5", "--tenant", ""), "an id must not be empty"),
        (("get", "recent_mesages"), "did you mean recent_messages?"),
        (("unset", "colour"), "colour: is not a setting"),
    ):
        refused = await settings(*arguments)
        assert (refused.code, refused.out) == (2, "")
        assert named in refused.err
        assert "Traceback" not in refused.err
    bogus = await settings("set", "bogus=1")
    assert (bogus.code, bogus.err) == (
        2,
        "mnemon: bogus: is not a setting\n  List the settings: mnemon settings get\n",
    )
    absent = await settings("rollback", "7")
    assert (absent.code, absent.out) == (1, "")
    assert absent.err == (
        "mnemon: revision 7 of these settings is not stored, or is a deletion\n"
        "  List the revisions: mnemon settings history\n"
    )
    assert await settings.json("history") == await settings.json("history", "--tenant", "acme") == []


async def test_settings_history_lists_revisions_and_rollback_restores_one(
    settings: SettingsCommands, connection: Client
) -> None:
    first = await settings.done("set", "recent_messages=3", "limits.per_user=60")
    second = await settings.done("set", "recent_messages=4")
    await settings.done("set", "recent_messages=5", "--tenant", "acme")
    third = await settings.done("unset", "limits.per_user")
    revisions = await settings.json("history")
    assert [(each["revision"], each["changes"]) for each in revisions] == [
        (
            first,
            [{"setting": "recent_messages", "after": 3}, {"setting": "limits.per_user", "after": 60}],
        ),
        (second, [{"setting": "recent_messages", "before": 3, "after": 4}]),
        (third, [{"setting": "limits.per_user", "before": 60}]),
    ]
    assert {each["by"] for each in revisions} == {"mnemon-settings"}
    shown = (await settings("history")).out
    assert "recent_messages: 3 → 4" in shown
    assert "limits.per_user: 60 → not set" in shown

    last = await settings.done("rollback", str(first))
    assert last > third
    assert flatten_document(await settings.json("get")) == {
        **DEFAULTS,
        "recent_messages": 3,
        "limits.per_user": 60,
    }
    assert len(await settings.json("history", "--tenant", "acme")) == 1

    await (await connection.jetstream().key_value("settings")).put("default", b'{"recent_messages": "many"}')
    assert (await settings.json("get"))["recent_messages"] == 3
    assert "not valid: recent_messages: " in (await settings("history")).out
    refused = await settings("rollback", str(last + 1))
    assert (refused.code, refused.out) == (2, "")
    assert "recent_messages: " in refused.err


@pytest.mark.long
async def test_a_preset_is_shown_set_and_taken_back(settings: SettingsCommands) -> None:
    shown = await settings.json("preset")
    assert shown["004"]["values"]["limits.profile"] == 50
    before = await settings.done("set", "recent_messages=7", "--tenant", "acme")

    await settings.done("preset", "004", "--tenant", "acme")
    acme = flatten_document(await settings.json("get", "--tenant", "acme"))
    everybody = flatten_document(await settings.json("get"))

    assert (acme["dedupe.duplicate_threshold"], acme["recent_messages"]) == (0.9, 7)
    assert everybody["dedupe.duplicate_threshold"] is None
    await settings.done("rollback", str(before), "--tenant", "acme")
    assert (
        flatten_document(await settings.json("get", "--tenant", "acme"))["dedupe.duplicate_threshold"] is None
    )
    unknown = await settings("preset", "005")
    assert (unknown.code, "choose from: 000, 001" in unknown.err) == (2, True)
