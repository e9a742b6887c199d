"""Demonstration: a sample conversation sent through all of mnemon, and a bot's memory of it.

`conversation.jsonl` has two weeks of March 2026 in three people's lives, written for this project. Anna
writes in English, Иван in Russian, and Lena in both languages, in two named conversations. Each line is an
event, in the order of publication:

    {"event": "message", "user": "lena", "conversation": "work", "body": {"role": "user", "content": "Hi!"}}

Without `conversation` the event belongs to the user's current conversation. In place of `body`, `raw` has the
invalid data of a careless bot. The file has:

    319 messages, one of them twice     1 `started` that discards the messages before
      8 changes of a user's data        1 `cleared`
      2 broken messages: one is cut short, the other has an unknown role
"""
