"""Record of the embedding model that made the vectors. Vectors of different models cannot be compared."""

from typing import Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from mnemon_infra.vectors.port import VectorsOutdated

RECORD: Final = "made_by.json"
"""File of the record, in a folder of vectors."""


def split_model_name(text: str) -> tuple[str, str | None]:
    """Split `provider/model`, or `provider` alone, into both parts."""
    provider, _, model = text.partition("/")
    return provider, model or None


class EmbeddingMetadata(BaseModel):
    """An embedding model, as the engine records it with its vectors.

    The dimension is None without an embedder.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    model: str
    dimension: int | None

    @classmethod
    def parse(cls, kept: str) -> Self | None:
        """Parse a record; None if it cannot be parsed."""
        try:
            return cls.model_validate_json(kept)
        except ValidationError:
            return None

    def require(self, recorded: "EmbeddingMetadata | None", place: str) -> None:
        """Check that this model made the recorded vectors.

        Raises:
            VectorsOutdated: another model made the vectors, or their model is not recorded.
        """
        if recorded is None:
            raise VectorsOutdated(f"{place} do not name their embedding model: run `mnemon reindex`")
        if recorded != self:
            raise VectorsOutdated(
                f"{place} were made by {recorded}, and the settings name {self}: "
                "run `mnemon reindex` (with --data DIR for the stack of a folder). "
                "Or set the model back, while `mnemon up --only persist` or `mnemon run persist` runs: "
                f"mnemon settings set {recorded.setting}"
            )

    @property
    def setting(self) -> str:
        """The settings that name this model."""
        provider, model = split_model_name(self.model)
        return f"embedding.provider={provider}" + (f" embedding.model={model}" if model else "")

    def __str__(self) -> str:
        size = "without dense vectors" if self.dimension is None else f"{self.dimension} dimensions"
        return f"{self.model} ({size})"
