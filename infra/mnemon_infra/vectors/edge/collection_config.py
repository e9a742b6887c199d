"""Configuration of a collection in the embedded engine."""

from pathlib import Path

from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    HnswIndexConfig,
    KeywordIndexParams,
    Modifier,
    ScalarQuantizationConfig,
    ScalarType,
    UpdateOperation,
)

from mnemon_infra.vectors.layout import DENSE, FULL_SCAN_POINTS, SPARSE, TENANT, USER


def create_shard(path: Path, dimension: int | None) -> EdgeShard:
    """Create and open an empty shard. Without a `dimension`, its points have no dense vectors."""
    shard = EdgeShard.create(str(path), _build_config(dimension))
    shard.update(UpdateOperation.create_field_index(TENANT, KeywordIndexParams(enable_hnsw=False)))
    shard.update(UpdateOperation.create_field_index(USER, KeywordIndexParams(is_tenant=True)))
    return shard


def load_shard(path: Path, dimension: int | None) -> EdgeShard:
    """Open a shard with the configuration of this version, even if an earlier version created the shard."""
    return EdgeShard.load(str(path), _build_config(dimension))


def _build_config(dimension: int | None) -> EdgeConfig:
    dense = {} if dimension is None else {DENSE: EdgeVectorParams(dimension, Distance.Cosine)}
    compared_kilobytes = max(1, FULL_SCAN_POINTS * (dimension or 0) * 4 // 1024)
    return EdgeConfig(
        vectors=dense,
        sparse_vectors={SPARSE: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        # Searches compare bytes, and score the best points by their floats: see `engine._RESCORED`.
        quantization_config=ScalarQuantizationConfig(ScalarType.Int8),
        # Every search is within one user: build a graph for each large user, and none over all users.
        hnsw_config=HnswIndexConfig(
            m=0,
            payload_m=16,
            ef_construct=100,
            full_scan_threshold=compared_kilobytes,
            max_indexing_threads=1,
        ),
        # By default nothing below 10 MB would have a graph.
        optimizers=EdgeOptimizersConfig(indexing_threshold=compared_kilobytes),
        # The caller waits for the engine's threads, and waking several takes longer than short queries.
        max_search_threads=1,
    )
