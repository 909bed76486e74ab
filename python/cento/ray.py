"""Embedding and serving on a Ray cluster, by actors of Ray Data and of Ray Serve with children of `cento`; needs
`cento[ray]`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import ray.data

from ._ray_serve import Served, serve
from .arrow import BATCH_ROWS, ArrowEmbedder

__all__ = ["Served", "embed", "serve"]


def embed(
    dataset: ray.data.Dataset,
    *,
    column: str = "text",
    title: str | None = None,
    concurrency: int | tuple[int, int] | None = None,
    num_cpus: float = 1,
    num_gpus: float = 0,
    batch_size: int = BATCH_ROWS,
    **options: Any,
) -> ray.data.Dataset:
    """The dataset with the columns `vector`, `n_tokens` and `truncated`.

    `concurrency` actors, by default as many as find room in the cluster, hold `num_cpus` cores each, which are the
    threads of their encoder, and `num_gpus`; with a GPU they compute there. Options are those of `cento embed`. Blocks
    are cut into batches first, for Ray gives an actor whole blocks: eight small files are often one. Ray asks again for
    what a lost actor was at; with `use_cache=True` and `cache=DIR` on a disk that nodes share, a run that was killed
    embeds nothing again. Vectors do not depend on the number of actors. Rows may come in another order: keep a column
    of ids.
    """
    if num_gpus:
        options.setdefault("device", "gpu")
    options.setdefault("threads", max(1, int(num_cpus)))
    if concurrency is None:
        room = ray.cluster_resources()
        by_cpu = room.get("CPU", 1) // num_cpus if num_cpus else float("inf")
        by_gpu = room.get("GPU", 0) // num_gpus if num_gpus else float("inf")
        concurrency = (1, max(1, int(min(by_cpu, by_gpu, 1_000))))  # what reads wants a core too
    return dataset.repartition(target_num_rows_per_block=batch_size).map_batches(
        _Actor,
        fn_constructor_kwargs={"column": column, "title": title, **options},
        batch_format="pyarrow",
        batch_size=batch_size,
        concurrency=concurrency,
        num_cpus=num_cpus,
        num_gpus=num_gpus,
    )


class _Actor:
    def __init__(self, **options: Any):
        self._embedder = ArrowEmbedder(**options)

    def __call__(self, table: pa.Table) -> pa.Table:
        return self._embedder(table)
