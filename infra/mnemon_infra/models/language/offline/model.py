"""Rules that replace a language model, for installations without a model, and for tests.

The rules find facts by forms of words in English and Russian: "I live in ...", «у меня аллергия на ...» (I am
allergic to ...). The rules miss facts in other words or another language, and so find a small part of all
facts. Summaries consist of the most informative sentences, whole or cut, in any language. The rules send no
requests, cost nothing, and always give the same answer to the same request.
"""

import json
from typing import Final

from mnemon_infra.models import tokens
from mnemon_infra.models.language.offline.facts import find_facts
from mnemon_infra.models.language.offline.summaries import write_summary
from mnemon_infra.models.language.port import LanguageModel, ModelAnswer, ModelRequest, Usage

PROVIDER: Final = "offline"
MODEL: Final = "rules"


class _Rules:
    provider = PROVIDER
    model = MODEL
    batches = None
    thinking_tokens = 0

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        if request.purpose == "extract":
            text = json.dumps({"facts": find_facts(request.messages, request.known)}, ensure_ascii=False)
        else:
            text = write_summary(request.messages)
        read = tokens.count_tokens(request.instructions) + tokens.count_tokens(request.text)
        return ModelAnswer(text, Usage(input=read, output=tokens.count_tokens(text)))


def build_offline_model() -> LanguageModel:
    """Return a language model that answers by rules, without requests to a server."""
    return _Rules()
