"""Split of a context into parts, and their places in a request to a provider."""

from typing import Any

import pytest

from mnemon.gateway.proxy.anthropic_format import AnthropicFormat
from mnemon.gateway.proxy.messages import CalledTool, ChatMessage, list_shown_texts
from mnemon.gateway.proxy.openai_format import OpenAIFormat
from mnemon.gateway.proxy.placement import PlacedContext, split_context
from mnemon_contracts.verbs.ask import ContextReplyV1, ContextSection

TEXT = """<key_facts>
- [user_fact] Plays the cello
</key_facts>

<history_summary>
They spoke of music.
</history_summary>

<recent_messages>
User: [2026-11-23 13:35] I live in Porto
  near the &lt;river&gt;
Assistant: How nice.
User: [2026-11-23 13:36] What do I play?
</recent_messages>

<relevant_memory>
- [user_fact] Owns two bows
</relevant_memory>"""

CONTEXT = PlacedContext("STABLE", "FOUND")


def reply(text: str, *sections: str) -> ContextReplyV1:
    return ContextReplyV1(text=text, sections={name: ContextSection(shown=1) for name in sections})


def test_context_is_split_and_repeats_nothing() -> None:
    history = ["I live in Porto\nnear the <river>", "What do I play?"]
    stable, found = split_context(reply(TEXT, "facts", "summaries", "recent", "relevant"), history)
    assert "Plays the cello" in stable
    assert "They spoke of music." in stable
    assert "Owns two bows" not in stable
    assert "Owns two bows" in found
    assert "Assistant: How nice." in found
    assert "Porto" not in found
    assert "What do I play?" not in found


def test_cut_message_of_the_history_is_not_repeated() -> None:
    long = "I live in Porto, in a house with a garden, a cat and a view of the river and the sea"
    shown = f"<recent_messages>\nUser: [2026-11-23 13:35] {long[:60]}…\n</recent_messages>"
    assert split_context(reply(shown, "recent"), [long]) == PlacedContext()
    assert split_context(reply(shown, "recent"), ["Another text"]).found


@pytest.mark.parametrize("element", ["recent_messages", "relevant_messages"])
def test_message_of_the_history_is_repeated_in_no_section(element: str) -> None:
    shown = f"<{element}>\nUser: I live in Porto\nAssistant: How nice.\n</{element}>"
    found = split_context(reply(shown), iter(["I live in Porto"])).found
    assert "How nice." in found
    assert "Porto" not in found
    assert split_context(reply(shown), ["I live in Porto", "How nice."]) == PlacedContext()


@pytest.mark.parametrize(
    "shown", ["I live in Porto ", "[2026-11-23 13:35]   I live in Porto\n  ", "\n  I live in Porto"]
)
def test_message_with_white_space_at_its_ends_is_not_repeated(shown: str) -> None:
    context = reply(f"<recent_messages>\nUser: {shown}\nAssistant: How nice.\n</recent_messages>")
    found = split_context(context, ["I live in Porto"]).found
    assert "How nice." in found
    assert "Porto" not in found
    assert "Porto" in split_context(context, ["Porto"]).found, "the end of a message is another message"


def test_tools_that_the_client_shows_itself_are_not_named() -> None:
    shown = "<recent_messages>\nUser: What is it like?\nSystem: Tools used: weather, web\n</recent_messages>"
    calls = (CalledTool("1", "weather", "{}"), CalledTool("2", "web", "{}"), CalledTool("3", "weather", "{}"))
    history = [ChatMessage("user", "What is it like?"), ChatMessage("assistant", "", calls)]
    assert split_context(reply(shown), list_shown_texts(history)) == PlacedContext()
    assert "web" in split_context(reply(shown), list_shown_texts(history[:1])).found


def test_context_without_memory_is_empty() -> None:
    nothing = "<key_facts>\nNothing is saved yet.\n</key_facts>"
    assert split_context(reply(nothing), []) == PlacedContext()
    assert split_context(ContextReplyV1(), []) == PlacedContext()


def test_openai_system_prompt_stays_the_beginning() -> None:
    body: dict[str, Any] = {
        "model": "m",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "What do I play?"},
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "tool", "tool_call_id": "c1", "content": "found"},
        ],
    }
    placed = OpenAIFormat().place_context(body, CONTEXT)
    messages = placed["messages"]
    assert messages[0] == {"role": "developer", "content": "Be brief.\n\nSTABLE"}
    assert messages[1:3] == body["messages"][1:3]
    assert messages[3] == {"role": "user", "content": "FOUND\n\nWhat do I play?"}
    assert messages[4:] == body["messages"][4:]
    assert body["messages"][0]["content"] == "Be brief.", "the client's body is unchanged"


def test_openai_parts_stay_in_their_order() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    text = {"type": "text", "text": "What is this?"}
    placed = OpenAIFormat().place_context({"messages": [{"role": "user", "content": [text, image]}]}, CONTEXT)
    assert placed["messages"] == [
        {"role": "system", "content": "STABLE"},
        {"role": "user", "content": [{"type": "text", "text": "FOUND"}, text, image]},
    ]


@pytest.mark.parametrize(
    ("system", "placed"),
    [
        (None, "STABLE"),
        ("Be brief.", "Be brief.\n\nSTABLE"),
        (
            [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            [
                {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "STABLE"},
            ],
        ),
    ],
)
def test_anthropic_system_prompt_stays_the_beginning(system: Any, placed: Any) -> None:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
    if system:
        body["system"] = system
    done = AnthropicFormat().place_context(body, CONTEXT)
    assert done["system"] == placed
    assert done["messages"] == [{"role": "user", "content": "FOUND\n\nHi"}]


def test_anthropic_results_of_tools_stay_first() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "found"}
    body: dict[str, Any] = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "What do I play?"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "find", "input": {}}]},
            {"role": "user", "content": [result]},
        ]
    }
    messages = AnthropicFormat().place_context(body, CONTEXT)["messages"]
    assert messages[0]["content"][0] == {"type": "text", "text": "FOUND"}
    assert messages[1:] == body["messages"][1:]
