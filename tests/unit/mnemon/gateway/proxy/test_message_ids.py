"""Ids of messages, which a client sends again with each request of a conversation."""

from mnemon.gateway.proxy.messages import (
    CalledTool,
    ChatMessage,
    build_event,
    digest_parts,
    identify_messages,
)

HISTORY = [
    ChatMessage("user", "hi"),
    ChatMessage("assistant", "Hello!"),
    ChatMessage("user", "yes"),
    ChatMessage("assistant", "Fine."),
    ChatMessage("user", "yes"),
]


def ids(messages: list[ChatMessage], conversation: str | None = None) -> list[str]:
    return [each.id for each in identify_messages(conversation, messages)]


def test_same_history_has_the_same_ids() -> None:
    assert ids(HISTORY) == ids(list(HISTORY))
    assert len(set(ids(HISTORY))) == len(HISTORY)


def test_longer_history_keeps_the_ids_of_the_shorter_one() -> None:
    assert ids(HISTORY)[:3] == ids(HISTORY[:3])


def test_conversations_have_ids_of_their_own() -> None:
    assert not set(ids(HISTORY, "a")) & set(ids(HISTORY, "b"))


def test_edited_message_and_its_answer_are_new() -> None:
    edited = [*HISTORY[:2], ChatMessage("user", "no"), ChatMessage("assistant", "Fine.")]
    assert ids(edited)[:2] == ids(HISTORY)[:2]
    assert not set(ids(edited)[2:]) & set(ids(HISTORY))


def test_history_without_its_beginning_changes_the_first_id_only() -> None:
    assert ids(HISTORY[2:])[1:] == ids(HISTORY)[3:]
    assert [each.is_head for each in identify_messages(None, HISTORY[2:])] == [True, False, False]
    assert [each.is_head for each in identify_messages(None, HISTORY[:1])] == [False]


def test_equal_pairs_of_one_history_are_different_messages() -> None:
    again = [ChatMessage("user", "yes"), ChatMessage("assistant", "Fine.")] * 3
    assert len(set(ids(again))) == len(again)


def test_white_space_at_the_ends_and_the_order_of_arguments_do_not_count() -> None:
    first = ChatMessage("assistant", " Hello!\n", (CalledTool("c1", "find", '{"a": 1, "b": 2}'),))
    second = ChatMessage("assistant", "Hello!", (CalledTool("c1", "find", '{"b":2,"a":1}'),))
    assert ids([first]) == ids([second])


def test_arguments_that_no_event_can_have_are_stored_as_text() -> None:
    for arguments in ('{"a": NaN}', '{"a": 1e999}', '{"a": "\\u0000"}', '{"a": "\\ud800"}'):
        message = ChatMessage("assistant", "", (CalledTool("c1", "find", arguments),))
        (identified,) = identify_messages(None, [message])
        event = build_event(identified)
        assert event
        assert event.tool_calls
        assert event.tool_calls[0].arguments == arguments


def test_images_make_a_message_different() -> None:
    cat, dog = (
        ChatMessage("user", "What is this?", attachments=1, attachments_digest=digest_parts([{"url": name}]))
        for name in ("cat.png", "dog.png")
    )
    assert ids([cat]) != ids([dog])


def test_event_has_tool_calls_and_notes() -> None:
    (call,) = identify_messages(
        None, [ChatMessage("assistant", "", (CalledTool("c1", "find", '{"query": "cello"}'),))]
    )
    event = build_event(call, {"model": "a-model"})
    assert event
    assert event.tool_calls
    assert event.tool_calls[0].arguments == {"query": "cello"}
    assert event.metadata == {"model": "a-model"}
    (result,) = identify_messages(None, [ChatMessage("tool", "found", tool_call_id="c1")])
    event = build_event(result)
    assert event
    assert (event.role, event.task_id, event.metadata) == ("tool", "c1", {"tool_call_id": "c1"})


def test_arguments_that_are_no_json_are_kept_as_text() -> None:
    (call,) = identify_messages(None, [ChatMessage("assistant", "", (CalledTool("c1", "find", '{"query'),))])
    event = build_event(call)
    assert event
    assert event.tool_calls
    assert event.tool_calls[0].arguments == '{"query'


def test_arguments_that_are_nested_too_deeply_are_kept_as_text() -> None:
    arguments = "[" * 100_000
    (call,) = identify_messages(None, [ChatMessage("assistant", "", (CalledTool("c1", "find", arguments),))])
    event = build_event(call)
    assert event
    assert event.tool_calls
    assert event.tool_calls[0].arguments == arguments


def test_bare_image_is_no_event() -> None:
    (image,) = identify_messages(None, [ChatMessage("user", "", attachments=1, attachments_digest="d")])
    assert build_event(image) is None
