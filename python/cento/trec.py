"""Tools that judge rankings: corpora of ir_datasets in, runs for ranx and ir_measures out, and TREC files.

A run is what `Client.run` gives: for each question its documents and their scores. `ir_measures` and `pytrec_eval`
take it as it is.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from . import command
from .results import Ranking, Run


def runs(rankings: Mapping[str, Ranking]) -> Run:
    """Rankings of chunks as a run of documents, each with the score of its best chunk."""
    found: Run = {}
    for query, ranking in rankings.items():
        documents = found.setdefault(query, {})
        for hit in ranking:
            documents[hit.document] = max(hit.score, documents.get(hit.document, hit.score))
    return found


def write_run(run: Run, path: str | os.PathLike[str], tag: str = "cento") -> None:
    """Writes a TREC run. An id with a blank in it cannot stand in one, and is a `ValueError`."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for query, documents in run.items():
            ranked = sorted(documents.items(), key=lambda item: (item[1], item[0]), reverse=True)
            for rank, (document, score) in enumerate(ranked, 1):
                if any(len(id.split()) != 1 or id != id.strip() for id in (query, document)):
                    raise ValueError(f"query {query!r}, document {document!r}: a column of a run has no blanks")
                file.write(f"{query} Q0 {document} {rank} {score!r} {tag}\n")


def to_ranx(run: Run, name: str = "cento") -> Any:
    """A run as `ranx.Run`. Questions that found nothing are left out, as ranx cannot hold them."""
    import ranx

    return ranx.Run({query: documents for query, documents in run.items() if documents}, name=name)


def to_ir_measures(run: Run) -> Iterator[Any]:
    """A run as the scored documents of ir_measures."""
    import ir_measures

    for query, documents in run.items():
        for document, score in documents.items():
            yield ir_measures.ScoredDoc(query, document, score)


def index_ir_dataset(
    dataset: Any,
    collection: str | os.PathLike[str],
    *,
    fields: Iterable[str] | None = None,
    binary: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Indexes the documents of a dataset of ir_datasets, given as such or by its id.

    The title is the field `title`, the text all other fields of text, or those of `fields`, a line each.
    `options` are those of `cento index`.
    """
    documents = _dataset(dataset).docs_iter()
    with tempfile.TemporaryDirectory(prefix="cento-ir-") as folder:
        path = Path(folder, "corpus.jsonl")
        with path.open("w", encoding="utf-8") as file:
            for document in documents:
                given = document._asdict()
                names = fields or [name for name in given if name not in ("doc_id", "title")]
                texts = [given[name] for name in names if isinstance(given[name], str)]
                line = {
                    "_id": given["doc_id"],
                    "title": given.get("title") or "",
                    "text": "\n".join(filter(None, texts)),
                }
                file.write(json.dumps(line) + "\n")
        return command.index(path, collection=collection, binary=binary, format="beir", **options)


def queries(dataset: Any) -> dict[str, str]:
    """The questions of a dataset of ir_datasets, by their ids."""
    return {query.query_id: query.default_text() for query in _dataset(dataset).queries_iter()}


def _dataset(dataset: Any) -> Any:
    if not isinstance(dataset, str):
        return dataset
    import ir_datasets

    return ir_datasets.load(dataset)
