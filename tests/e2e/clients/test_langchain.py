"""LangChain agents with memory: the real library, and a model with scripted answers.

Each test imports the library: every worker imports this module, and only one runs the tests.
"""

from typing import Any

import nats
import pytest

from mnemon import MemoryClient
from mnemon_contracts.function_tools import list_definitions
from tests.support.patience import PATIENT
from tests.support.processes.stack import TIMEOUT, Up


@pytest.mark.long
async def test_langchain_agent_remembers_between_runs(shared: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    from langchain.agents import create_agent
    from langchain.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    from mnemon import langchain
    from tests.support.scripted_model import ScriptedModel

    assert shared.endpoints
    save = {"name": "memory_save", "args": {"text": "Plays the cello in a quartet"}, "id": "c1"}
    get = {"name": "memory_get", "args": {"id": "pf_404"}, "id": "c2"}
    model = ScriptedModel(
        answers=[
            AIMessage("", tool_calls=[save, get]),
            AIMessage("A cello, how nice."),
            AIMessage("The cello."),
        ]
    )
    monkeypatch.setattr(langchain, "CONFIRMATION_TIMEOUT", TIMEOUT)
    async with MemoryClient.connect(shared.endpoints.nats, tenant="langchain", timeouts=PATIENT) as memory:
        middleware = langchain.MemoryMiddleware(memory)
        agent = create_agent(
            model, middleware=[middleware], context_schema=langchain.MemoryUser, system_prompt="Be brief."
        )
        anna = langchain.MemoryUser("anna")
        await agent.ainvoke({"messages": [HumanMessage("I play the cello")]}, context=anna)
        _, second = model._shown
        saved, missing = (message for message in second if isinstance(message, ToolMessage))
        assert '"decision":"saved"' in saved.text
        assert missing.status == "error"
        assert (
            missing.text
            == "not_found: there is no fact, message, document or summary 'pf_404'; find the id with `search`"
        )
        assert {tool.name for tool in model._tools} == {tool["name"] for tool in list_definitions("mcp")}

        done = await agent.ainvoke({"messages": [HumanMessage("What do I play?")]}, context=anna)
        assert done["messages"][-1].text == "The cello."
        system, *said = model._shown[-1]
        assert isinstance(system, SystemMessage)
        assert system.text.startswith("Be brief.")
        assert "Plays the cello in a quartet" in system.text
        assert [message.text.rpartition("] ")[2] for message in said] == [
            "I play the cello",
            "A cello, how nice.",
            "What do I play?",
        ]
        seen = await memory.publish("anna", "user", "Bye")
        kept = [message.content for message in (await memory.history("anna", min_seq=seen)).messages]
        assert kept == ["I play the cello", "A cello, how nice.", "What do I play?", "The cello.", "Bye"]

        begun = await middleware.start_conversation("anna")
        assert (await memory.history("anna", min_seq=begun)).messages == ()
        found = await memory.search("anna", "cello", scope=["memories", "messages"], min_seq=begun)
        assert {hit.scope for hit in found.hits} == {"memories"}, "facts stay"


@pytest.mark.long
async def test_langchain_agent_answers_without_a_memory_server(shared: Up) -> None:
    from langchain.agents import create_agent
    from langchain.messages import AIMessage, HumanMessage

    from mnemon.langchain import MemoryMiddleware, MemoryUser
    from tests.support.scripted_model import ScriptedModel

    assert shared.endpoints
    connection = await nats.connect(shared.endpoints.nats)
    memory = MemoryClient(connection, tenant="langchain")
    model = ScriptedModel(answers=[AIMessage("Hello.")])
    agent = create_agent(model, middleware=[MemoryMiddleware(memory)], context_schema=MemoryUser)
    await connection.close()
    done = await agent.ainvoke({"messages": [HumanMessage("Hi")]}, context=MemoryUser("boris"))
    assert done["messages"][-1].text == "Hello."
    assert [message.text for message in model._shown[0]] == ["Hi"]


@pytest.mark.parametrize("user", [None, {"user": "anna"}, ""])
async def test_a_run_without_a_user_says_what_to_pass(shared: Up, user: Any) -> None:
    from langchain.agents import create_agent
    from langchain.messages import AIMessage, HumanMessage

    from mnemon.langchain import MemoryMiddleware, MemoryUser
    from tests.support.scripted_model import ScriptedModel

    assert shared.endpoints
    context = MemoryUser(user) if isinstance(user, str) else user
    model = ScriptedModel(answers=[AIMessage("Hello.")])
    async with MemoryClient.connect(shared.endpoints.nats, tenant="langchain") as memory:
        agent = create_agent(model, middleware=[MemoryMiddleware(memory)])
        with pytest.raises(ValueError, match=r"context=MemoryUser\(\"u42\"\).*context_schema=MemoryUser"):
            await agent.ainvoke({"messages": [HumanMessage("Hi")]}, context=context)
    assert not model._shown, "no model was asked"


async def test_late_confirmation_is_logged_with_its_reason(
    shared: Up, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from langchain.agents import create_agent
    from langchain.messages import AIMessage, HumanMessage

    from mnemon import langchain
    from tests.support.scripted_model import ScriptedModel

    assert shared.endpoints
    monkeypatch.setattr(langchain, "CONFIRMATION_TIMEOUT", 0.0)
    model = ScriptedModel(answers=[AIMessage("Hello.", id="m2")])
    async with MemoryClient.connect(shared.endpoints.nats, tenant="langchain") as memory:
        middleware = langchain.MemoryMiddleware(memory)
        agent = create_agent(model, middleware=[middleware], context_schema=langchain.MemoryUser)
        said = HumanMessage("Hi", id="m1")
        await agent.ainvoke({"messages": [said]}, context=langchain.MemoryUser("clara"))
    assert [each for each in caplog.messages if each.startswith("message not confirmed")] == [
        "message not confirmed id=m1 role=user error=no answer in time",
        "message not confirmed id=m2 role=assistant error=no answer in time",
    ]


@pytest.mark.parametrize(
    ("said", "answered"),
    [("Hi\0", "Hello."), ("Hi", "Hello.\0"), ("Hi" * 600_000, "Hello."), ("Hi", "\ud800")],
)
async def test_agent_answers_where_the_memory_cannot_have_a_message(
    shared: Up, caplog: pytest.LogCaptureFixture, said: str, answered: str
) -> None:
    from langchain.agents import create_agent
    from langchain.messages import AIMessage, HumanMessage

    from mnemon.langchain import MemoryMiddleware, MemoryUser
    from tests.support.scripted_model import ScriptedModel

    assert shared.endpoints
    model = ScriptedModel(answers=[AIMessage(answered, id="m2")])
    async with MemoryClient.connect(shared.endpoints.nats, tenant="langchain") as memory:
        agent = create_agent(model, middleware=[MemoryMiddleware(memory)], context_schema=MemoryUser)
        done = await agent.ainvoke({"messages": [HumanMessage(said, id="m1")]}, context=MemoryUser("dora"))
    assert done["messages"][-1].text == answered
    (warning,) = [each for each in caplog.messages if each.startswith("message not confirmed")]
    assert warning.startswith(f"message not confirmed id={'m2' if said == 'Hi' else 'm1'} role=")


async def test_agent_without_messages_speaks_first(shared: Up) -> None:
    from langchain.agents import create_agent
    from langchain.messages import AIMessage

    from mnemon.langchain import MemoryMiddleware, MemoryUser
    from tests.support.scripted_model import ScriptedModel

    assert shared.endpoints
    model = ScriptedModel(answers=[AIMessage("Welcome back.")])
    async with MemoryClient.connect(shared.endpoints.nats, tenant="langchain") as memory:
        agent = create_agent(model, middleware=[MemoryMiddleware(memory)], context_schema=MemoryUser)
        done = await agent.ainvoke({"messages": []}, context=MemoryUser("emil"))
    assert [message.text for message in done["messages"]] == ["Welcome back."]


async def test_picture_hides_no_earlier_message_without_an_answer(shared: Up) -> None:
    from langchain.agents import create_agent
    from langchain.messages import AIMessage, HumanMessage

    from mnemon.langchain import MemoryMiddleware, MemoryUser
    from tests.support.scripted_model import ScriptedModel

    assert shared.endpoints
    model = ScriptedModel(answers=[AIMessage("Nice.")])
    picture = HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}])
    async with MemoryClient.connect(shared.endpoints.nats, tenant="langchain", timeouts=PATIENT) as memory:
        await memory.publish("finn", "user", "What is in the next picture?", wait=True)
        agent = create_agent(model, middleware=[MemoryMiddleware(memory)], context_schema=MemoryUser)
        await agent.ainvoke({"messages": [picture]}, context=MemoryUser("finn"))
    *earlier, _ = [message.text for message in model._shown[0] if isinstance(message, HumanMessage)]
    assert [text.rpartition("] ")[2] for text in earlier] == ["What is in the next picture?"]


async def test_all_messages_of_a_run_are_shown_and_stored(shared: Up) -> None:
    from langchain.agents import create_agent
    from langchain.messages import AIMessage, HumanMessage

    from mnemon.langchain import MemoryMiddleware, MemoryUser
    from tests.support.scripted_model import ScriptedModel

    assert shared.endpoints
    model = ScriptedModel(answers=[AIMessage("Both noted."), AIMessage("Yes.")])
    async with MemoryClient.connect(shared.endpoints.nats, tenant="langchain", timeouts=PATIENT) as memory:
        agent = create_agent(model, middleware=[MemoryMiddleware(memory)], context_schema=MemoryUser)
        # LangChain itself writes a summary of earlier messages as if the user had said it.
        summary = HumanMessage("They spoke of music", additional_kwargs={"lc_source": "summarization"})
        for texts in (["My cello is old", "My flute is new"], ["Is my cello old?"]):
            said: Any = {"messages": [summary, *(HumanMessage(text) for text in texts)]}
            await agent.ainvoke(said, context=MemoryUser("gina"))
        seen = await memory.publish("gina", "user", "Bye")
        stored = [message.content for message in (await memory.history("gina", min_seq=seen)).messages]
    spoken = ["My cello is old", "My flute is new", "Both noted.", "Is my cello old?", "Yes."]
    assert stored == [*spoken, "Bye"]
    first, second = ([each.text.rpartition("] ")[2] for each in shown[1:]] for shown in model._shown)
    assert (first, second) == (spoken[:2], spoken[:4])
