"""Which embedding model made the vectors: similarities between two models mean nothing."""

from typing import Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from mnemon_infra.vectors.port import VectorsOutdated

RECORD: Final = "made_by.json"
"""The file that says it, in a folder of vectors."""


def provider_and_model(spelled: str) -> tuple[str, str | None]:
    """What `provider/model` names, or `provider` alone."""
    provider, _, model = spelled.partition("/")
    return provider, model or None


class MadeBy(BaseModel):
    """An embedding model; what the engine keeps beside its vectors. No dimension: nothing embeds."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    model: str
    dimension: int | None

    @classmethod
    def read(cls, kept: str) -> Self | None:
        """What was kept beside the vectors; None when it cannot be told."""
        try:
            return cls.model_validate_json(kept)
        except ValidationError:
            return None

    def require(self, found: "MadeBy | None", place: str) -> None:
        """Stop at vectors that another model made.

        Raises:
            VectorsOutdated: it was another one, or nobody knows which.
        """
        if found is None:
            raise VectorsOutdated(f"{place} do not say which embedding model made them: run `mnemon reindex`")
        if found != self:
            raise VectorsOutdated(
                f"{place} were made by {found}, and the settings name {self}: "
                "run `mnemon reindex` (with --data DIR for the stack of a folder). "
                "Or set the model back, while `mnemon up --only persist` or `mnemon run persist` runs: "
                f"mnemon settings set {found.setting}"
            )

    @property
    def setting(self) -> str:
        """The settings that name this model."""
        provider, model = provider_and_model(self.model)
        return f"embedding.provider={provider}" + (f" embedding.model={model}" if model else "")

    def __str__(self) -> str:
        size = "without dense vectors" if self.dimension is None else f"{self.dimension} dimensions"
        return f"{self.model} ({size})"
