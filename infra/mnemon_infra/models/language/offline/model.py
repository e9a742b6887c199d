"""The model that is none: rules, for whoever has no model yet, and for tests.

It finds facts by forms of words in English and Russian ("I live in ...", «у меня аллергия на ...»), which is
little of what there is, and makes summaries of the sentences that tell most, as they were said, in any
language. It understands nothing: what is said in other words, or in another language, it does not find. It
asks nobody, costs nothing, and says the same whenever it is asked the same.
"""

import json
from typing import Final

from mnemon_infra.models import tokens
from mnemon_infra.models.language.offline.facts import facts
from mnemon_infra.models.language.offline.summaries import summary
from mnemon_infra.models.language.port import LanguageModel, ModelAnswer, ModelRequest, Usage

PROVIDER: Final = "offline"
MODEL: Final = "rules"


class _Rules:
    provider = PROVIDER
    model = MODEL
    batches = None

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        if request.purpose == "extract":
            text = json.dumps({"facts": facts(request.said, request.known)}, ensure_ascii=False)
        else:
            text = summary(request.said)
        read = tokens.count(request.instructions) + tokens.count(request.text)
        return ModelAnswer(text, Usage(input=read, output=tokens.count(text)))


def offline() -> LanguageModel:
    """The rules, as a model."""
    return _Rules()
