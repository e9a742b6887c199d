"""Record of the embedding model that made the vectors; vectors of different models cannot be compared."""

from typing import Final, Self

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from mnemon_infra.vectors.port import VectorsOutdated

log = structlog.get_logger("vectors")

RECORD: Final = "made_by.json"
"""File of the record, in a folder of vectors."""


def split_model_name(text: str) -> tuple[str, str | None]:
    """Split `provider/model` into its parts; the model is None if the text is a provider alone."""
    provider, _, model = text.partition("/")
    return provider, model or None


class EmbeddingMetadata(BaseModel):
    """The embedding model and the term weights of vectors, as the engine records them with the vectors.

    Attributes:
        model: provider and model of the embedder.
        dimension: dimension of its vectors; None if there is no embedder.
        terms: version of the term weights, `bm25.VERSION`; records of 0.1.0 lack it, which means 1.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    model: str
    dimension: int | None
    terms: int = 1

    @classmethod
    def parse(cls, kept: str) -> Self | None:
        """Parse a record; None if it cannot be parsed."""
        try:
            return cls.model_validate_json(kept)
        except ValidationError:
            return None

    def require_same_model(self, recorded: "EmbeddingMetadata | None", place: str) -> None:
        """Check that this model made vectors; log a warning if their term weights have another version.

        Args:
            recorded: the record that is stored with the vectors; None if it is absent or unreadable.
            place: description of the vectors, for messages.

        Raises:
            VectorsOutdated: another model made the vectors, or there is no readable record of their model.
        """
        if recorded is None:
            raise VectorsOutdated(
                f"{place} have no readable record of their embedding model: run `mnemon reindex` (with "
                "--data DIR for the stack of a folder)"
            )
        if not self.is_same_model(recorded):
            raise VectorsOutdated(
                f"{place} were made by {recorded}, and the settings name {self}. "
                "Run `mnemon reindex`. Or keep these vectors: while `mnemon up --only persist` or "
                "`mnemon run persist` runs, run in another terminal "
                f"`mnemon settings set {recorded.settings_arguments}`. For the stack of a folder, add "
                "--data DIR to `reindex`, `up` and `settings`"
            )
        if recorded.terms != self.terms:
            log.warning(
                "outdated term weights found",
                vectors=place,
                version=recorded.terms,
                current=self.terms,
                next_step="run `mnemon rebuild`, or stop mnemon and run `mnemon reindex`; to make a snapshot "
                "again, run `mnemon rebuild --drop NAME`, then `mnemon rebuild --until TIME`. Until then, "
                "searches find less and rank worse",
            )

    def is_same_model(self, other: "EmbeddingMetadata") -> bool:
        """Return whether two records name the same model; their term weights may differ."""
        return (self.model, self.dimension) == (other.model, other.dimension)

    @property
    def settings_arguments(self) -> str:
        """The settings that choose this model, as arguments of `mnemon settings set`."""
        provider, model = split_model_name(self.model)
        return f"embedding.provider={provider}" + (f" embedding.model={model}" if model else "")

    def __str__(self) -> str:
        size = "without dense vectors" if self.dimension is None else f"{self.dimension} dimensions"
        return f"{self.model} ({size})"
