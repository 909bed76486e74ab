"""DSPy: a retriever of predictions, and a retrieval model for `dspy.configure(rm=…)`."""

from __future__ import annotations

from typing import Any

import dspy
from dspy.dsp.utils import dotdict

from .client import Client


class CentoRetriever:
    """The best chunks for a question, as a prediction with `passages`, `ids`, `documents` and `scores`.

    `options` are those of `Client.search`.
    """

    def __init__(self, client: Client, *, k: int = 5, collection: str | None = None, **options: Any) -> None:
        self.client = client
        self.k = k
        self.collection = collection
        self.options = options

    def __call__(self, query: str, k: int | None = None) -> dspy.Prediction:
        return self.forward(query, k)

    def forward(self, query: str, k: int | None = None) -> dspy.Prediction:
        """The chunks for a question."""
        wanted = self.k if k is None else k
        hits = self.client.search(query, collection=self.collection, k=wanted, **self.options)
        return dspy.Prediction(
            passages=[hit.text for hit in hits],
            ids=[hit.id for hit in hits],
            documents=[hit.document for hit in hits],
            scores=[hit.score for hit in hits],
        )


class CentoContext:
    """The cited context of a question, as a prediction with `context`, `citations` and `n_tokens`."""

    def __init__(
        self, client: Client, *, budget: int | str = 2_000, collection: str | None = None, **options: Any
    ) -> None:
        self.client = client
        self.collection = collection
        self.options = {**options, "budget": budget}

    def __call__(self, query: str) -> dspy.Prediction:
        made = self.client.context(query, collection=self.collection, **self.options)
        return dspy.Prediction(
            context=made.text, passages=[made.text], citations=made.citations, n_tokens=made.n_tokens
        )


class CentoRM(dspy.Retrieve):
    """The retrieval model behind `dspy.Retrieve`: `dspy.configure(rm=CentoRM(client))`."""

    def __init__(self, client: Client, k: int = 3, collection: str | None = None, **options: Any) -> None:
        super().__init__(k=k)
        self._retriever = CentoRetriever(client, k=k, collection=collection, **options)

    def forward(self, query: str, k: int | None = None, **_: Any) -> list[dotdict]:
        """The chunks, each with its text as `long_text`."""
        found = self._retriever(query, self.k if k is None else k)
        columns = zip(found.passages, found.ids, found.documents, found.scores)
        return [dotdict(long_text=text, id=id, document=document, score=score) for text, id, document, score in columns]
