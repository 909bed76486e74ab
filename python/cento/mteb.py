"""mteb: Cento as a searcher, which measures all of it, and as an encoder, which measures its vectors alone."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy
from mteb.models.model_meta import ModelMeta

from . import command
from .client import Client
from .server import Server


class CentoSearch:
    """mteb's `SearchProtocol`: each corpus is indexed into a collection of its own, and a server answers the questions.

        mteb.evaluate(CentoSearch(), task)

    `index_options` are those of `cento index` (`model="…"`, `chunk_tokens="document"`), `search_options` those of
    `Client.search` (`mode="lexical"`). Scores are those of `cento run` with the same settings. `folder` keeps the
    collections; without it they go with this object.
    """

    def __init__(
        self,
        *,
        index_options: dict[str, Any] | None = None,
        search_options: dict[str, Any] | None = None,
        folder: str | Path | None = None,
        binary: str | None = None,
        name: str = "cento/hybrid",
    ) -> None:
        self.index_options = index_options or {}
        self.search_options = search_options or {}
        self.binary = binary
        self._temporary = tempfile.TemporaryDirectory(prefix="cento-mteb-") if folder is None else None
        self._folder = Path(folder if self._temporary is None else self._temporary.name)
        self._server: Server | None = None
        experiment = {"index": self.index_options, "search": self.search_options}
        revision = command.run("--version", binary=binary).decode().strip().replace(" ", "_")
        self._meta = ModelMeta.create_empty(
            {"name": name, "revision": revision, "experiment_kwargs": experiment if any(experiment.values()) else None}
        )

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """What mteb writes beside the results."""
        return self._meta

    def index(self, corpus: Any, *, task_metadata: Any, hf_split: str, hf_subset: str, **_: Any) -> None:
        """Indexes a corpus with the columns id, text and, if there are any, titles."""
        self.close()
        place = self._folder / f"{task_metadata.name}-{hf_subset}-{hf_split}"
        place.mkdir(parents=True, exist_ok=True)
        with (place / "corpus.jsonl").open("w", encoding="utf-8") as file:
            for row in corpus:
                line = {"_id": str(row["id"]), "title": row.get("title") or "", "text": row["text"]}
                file.write(json.dumps(line) + "\n")
        collection = place / "collection"
        options = {"format": "beir", **self.index_options}
        command.index(place / "corpus.jsonl", collection=collection, binary=self.binary, **options)
        model = options.get("model")
        self._server = Server(collection, binary=self.binary, deadline=600, **({"model": model} if model else {}))

    def search(
        self,
        queries: Any,
        *,
        task_metadata: Any,
        hf_split: str,
        hf_subset: str,
        top_k: int,
        top_ranked: Any = None,
        **_: Any,
    ) -> dict[str, dict[str, float]]:
        """The best `top_k` documents for each question, among `top_ranked` where a task gives them."""
        if self._server is None:
            raise ValueError("index a corpus before it is searched")
        texts = {str(row["id"]): _text(row) for row in queries}
        if top_ranked is None:
            return self._server.run(texts, k=top_k, **self.search_options)
        found: dict[str, dict[str, float]] = {}
        for id, text in texts.items():
            options = {**self.search_options, "within": list(top_ranked[id])}
            found |= self._server.run({id: text}, k=top_k, **options)
        return found

    def close(self) -> None:
        """Ends the server of the last corpus."""
        if self._server is not None:
            self._server.close()
            self._server = None


def _text(row: dict[str, Any]) -> str:
    text = row["text"]
    if not isinstance(text, str):
        raise ValueError(f"query {row['id']}: a conversation is no question that Cento can be asked")
    return text


class CentoEncoder:
    """mteb's `EncoderProtocol`: the vectors of a collection's encoder, with its prompt for questions."""

    def __init__(self, client: Client, *, collection: str | None = None) -> None:
        self.client = client
        self.collection = collection
        config = client.status(collection=collection).config
        overwrites = {
            "name": f"cento/{Path(config.model).name}",
            "revision": config.model_fingerprint,
            "embed_dim": config.dimensions,
            "similarity_fn_name": "cosine",
            "framework": [],
        }
        self._meta = ModelMeta.create_empty(overwrites)

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """What mteb writes beside the results."""
        return self._meta

    def encode(self, inputs: Any, *, prompt_type: Any = None, **_: Any) -> numpy.ndarray:
        """The vectors of batches of texts, `[texts, dimensions]`."""
        kind = "query" if getattr(prompt_type, "value", prompt_type) == "query" else "document"
        texts = [text for batch in inputs for text in batch["text"]]
        return self.client.embed_array(texts, kind=kind, collection=self.collection)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Cosines of all pairs, `[n, m]`."""
        import torch

        return torch.from_numpy(numpy.atleast_2d(_unit(embeddings1)) @ numpy.atleast_2d(_unit(embeddings2)).T)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Cosines of corresponding pairs, `[n]`."""
        import torch

        return torch.from_numpy((_unit(embeddings1) * _unit(embeddings2)).sum(axis=-1))


def _unit(vectors: Any) -> numpy.ndarray:
    rows = numpy.asarray(vectors, dtype=numpy.float32)
    return rows / numpy.maximum(numpy.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
