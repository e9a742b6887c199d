"""`mnemon demo`: a conversation of our own through all of mnemon, and what the bot remembers of it.

`conversation.jsonl` holds two weeks of March 2026 in three people's lives, written for this project. Anna
writes in English, Иван in Russian, and Lena in either, in two conversations that have names. An event to a
line, in the order in which they are published:

    {"event": "message", "user": "lena", "conversation": "work", "body": {"role": "user", "content": "Hi!"}}

Without `conversation` it is the user's current one. In place of `body`, `raw` has what a careless bot sent
that is no event at all. There are:

    319 messages, one of them twice     1 `started` that discards what was said before
      8 changes of a user's data        1 `cleared`
      2 that are broken: one is cut short, the other has an unknown role
"""
