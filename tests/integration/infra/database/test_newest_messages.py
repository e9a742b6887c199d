"""The newest messages of a conversation, read up to a limit of bytes."""

import json

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.subjects import build_chat_subject
from mnemon_infra.database.engine import Database
from mnemon_infra.database.memory import user_memory
from mnemon_infra.database.memory.user_memory import NewestMessagesQuery, load_newest_messages
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery


async def test_messages_older_than_enough_content_are_left_out(database: Database) -> None:
    content = "x" * (user_memory.VIEW_BYTES // 18 - 1)
    events = [
        Delivery(
            build_chat_subject("acme", "anna", "a", "message"),
            json.dumps({"role": "user", "content": content}).encode(),
            f"e{seq}",
            "LOG",
            seq,
            1,
            1.8e9 + seq,
        )
        for seq in range(1, 26)
    ]
    await write_rows(database, plan_batch(events).rows)

    for limit, read, left_out, complete in (
        (2, 2, 0, False),
        (19, 19, 0, False),
        (24, 19, 5, False),
        (25, 19, 6, True),
        (90, 19, 6, True),
    ):
        (view,) = await database.run_query(
            load_newest_messages([NewestMessagesQuery("acme", "anna", "a", limit)])
        )

        assert [message.seq for message in view.messages] == list(range(26 - read, 26))
        assert (view.left_out, view.complete) == (left_out, complete)

        (older,) = await database.run_query(
            load_newest_messages([NewestMessagesQuery("acme", "anna", "a", limit, before=4)])
        )
        assert [message.seq for message in older.messages] == [1, 2, 3][-limit:]
        assert (older.left_out, older.complete) == (0, limit >= 3)
