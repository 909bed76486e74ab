"""LangChain: retrievers, embeddings, and a compressor that puts any retriever's results under a hard budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from ._passages import Deliver, assembled, candidate, facts, is_blank, ranked
from .client import Client
from .types import GivenCandidate


class CentoRetriever(BaseRetriever):
    """The best chunks for a question, a document each.

    Metadata: `id` and `document` (also as `source`), `title`, `headings`, `rank`, `score`, `likelihood`, and
    `start_index`, the character of the document that the chunk begins with. `options` are those of `Client.search`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Client
    k: int = 10
    collection: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: str | None = None,
    ) -> list[Document]:
        options = {**self.options, "k": self.k if k is None else k}
        if filter is not None:
            options["filter"] = filter
        hits = self.client.search(query, collection=self.collection, **options)
        spans = self.client.characters(hits, collection=self.collection)
        return [
            Document(
                id=hit.id,
                page_content=hit.text,
                metadata={
                    "id": hit.id,
                    "document": hit.document,
                    "source": hit.document,
                    "title": hit.title,
                    "headings": hit.path,
                    "rank": hit.rank,
                    "score": hit.score,
                    "likelihood": hit.likelihood,
                    "start_index": start,
                },
            )
            for hit, (start, _) in zip(hits, spans)
        ]


class CentoContextRetriever(BaseRetriever):
    """The cited context that answers a question, as one document of at most `budget` tokens.

    Its metadata has the citations, with bytes and characters, the tokens and the outcome. `options` are those of
    `Client.context`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Client
    budget: int | str = 2_000
    collection: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, budget: int | str | None = None
    ) -> list[Document]:
        options = {**self.options, "budget": self.budget if budget is None else budget}
        made = self.client.context(query, collection=self.collection, **options)
        citations = [
            {
                "n": cited.n,
                "document": cited.document,
                "headings": cited.path,
                "bytes": [cited.span.start, cited.span.end],
                "characters": [cited.characters.start, cited.characters.end],
            }
            for cited in made.citations
        ]
        metadata = {
            "n_tokens": made.n_tokens,
            "budget_tokens": made.budget_tokens,
            "tokenizer": made.tokenizer,
            "outcome": made.outcome,
            "citations": citations,
        }
        return [Document(page_content=made.text, metadata=metadata)]


class CentoEmbeddings(Embeddings):
    """The vectors of a collection's encoder: of documents and, with the prompt that the encoder wants, of questions."""

    def __init__(self, client: Client, *, collection: str | None = None) -> None:
        self.client = client
        self.collection = collection

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector of unit length for each text."""
        return self.client.embed(texts, kind="document", collection=self.collection)

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return self.client.embed([text], kind="query", collection=self.collection)[0]


class CentoCompressor(BaseDocumentCompressor):
    """Makes a cited context of what any retriever found, inside a hard budget.

    With `deliver="context"` it is one document, whose text has at most `budget` tokens. With `"passages"` it is a
    document for each part that the context is made of, with the metadata of the document that it was and `citation`.
    A document is the same as another where `source` is, or its id; scores are `score` or `relevance_score`, else the
    order they come in. Without a `client` the program itself assembles. `options` are those of `cento.assemble`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    budget: int | str = 2_000
    client: Client | None = None
    deliver: Deliver = "context"
    options: dict[str, Any] = Field(default_factory=dict)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The documents of a question as a context."""
        given = [document for document in documents if not is_blank(document.page_content)]
        if not given:
            return []
        passages = ranked(_candidate(document, number) for number, document in enumerate(given, 1))
        made = assembled(query, passages, self.client, {**self.options, "budget": self.budget})
        if self.deliver == "context":
            return [Document(page_content=made.text, metadata=facts(made))]
        return [
            Document(
                id=given[source.passage].id,
                page_content=source.text,
                metadata={**given[source.passage].metadata, "citation": source.n},
            )
            for source in made.sources
        ]


def _candidate(document: Document, number: int) -> GivenCandidate:
    metadata = document.metadata
    name = next((str(known) for known in (metadata.get("source"), document.id) if known), str(number))
    score = next((metadata[key] for key in ("score", "relevance_score") if metadata.get(key) is not None), None)
    start = metadata.get("start_index")
    title = metadata.get("title")
    return candidate(
        document.page_content,
        name,
        score=score,
        title=title if isinstance(title, str) else None,
        start=start if isinstance(start, int) and start >= 0 else None,
        headings=[str(heading) for heading in metadata.get("headings") or ()],
    )
