"""LlamaIndex: a retriever with character spans, an embedding, and a postprocessor with a hard budget."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import ConfigDict, Field
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from ._passages import Deliver, assembled, candidate, facts, is_blank, ranked
from .client import Client
from .types import GivenCandidate


class CentoRetriever(BaseRetriever):
    """The best chunks for a question, as nodes with `start_char_idx` and `end_char_idx` in their documents.

    `options` are those of `Client.search`.
    """

    def __init__(
        self,
        client: Client,
        *,
        k: int = 10,
        collection: str | None = None,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self.client = client
        self.k = k
        self.collection = collection
        self.options = options

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self.client.search(query_bundle.query_str, collection=self.collection, k=self.k, **self.options)
        spans = self.client.characters(hits, collection=self.collection)
        nodes = []
        for hit, (start, end) in zip(hits, spans):
            node = TextNode(
                id_=hit.id,
                text=hit.text,
                start_char_idx=start,
                end_char_idx=end,
                metadata={"document": hit.document, "title": hit.title, "headings": " > ".join(hit.path)},
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=hit.document)},
            )
            nodes.append(NodeWithScore(node=node, score=hit.score))
        return nodes

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class CentoEmbedding(BaseEmbedding):
    """The vectors of a collection's encoder."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Client = Field(exclude=True)
    collection: str | None = None

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex writes down."""
        return "CentoEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.client.embed([query], kind="query", collection=self.collection)[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.client.embed(texts, kind="document", collection=self.collection)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


class CentoPostprocessor(BaseNodePostprocessor):
    """Makes a cited context of the nodes that any retriever found, inside a hard budget.

    With `deliver="context"` it is one node, whose text has at most `budget` tokens; its metadata is for you and is
    shown neither to the model nor to the encoder. With `"passages"` it is a node for each part that the context is
    made of. Without a `client` the program itself assembles. `options` are those of `cento.assemble`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    budget: int | str = 2_000
    client: Client | None = Field(default=None, exclude=True)
    deliver: Deliver = "context"
    options: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex writes down."""
        return "CentoPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise ValueError("a context answers a question: give query_bundle or query_str")
        given = [node for node in nodes if not is_blank(node.node.get_content())]
        if not given:
            return []
        passages = ranked(_candidate(node) for node in given)
        made = assembled(query_bundle.query_str, passages, self.client, {**self.options, "budget": self.budget})
        if self.deliver == "context":
            metadata = facts(made)
            hidden = list(metadata)
            node = TextNode(
                text=made.text,
                metadata=metadata,
                excluded_llm_metadata_keys=hidden,
                excluded_embed_metadata_keys=hidden,
            )
            return [NodeWithScore(node=node, score=max((node.score or 0.0 for node in given), default=0.0))]
        pieces = []
        for source in made.sources:
            whole = given[source.passage]
            first = getattr(whole.node, "start_char_idx", None)
            piece = TextNode(
                text=source.text,
                start_char_idx=None if first is None else first + source.start,
                end_char_idx=None if first is None else first + source.end,
                metadata={**whole.node.metadata, "citation": source.n},
                relationships=whole.node.relationships,
            )
            pieces.append(NodeWithScore(node=piece, score=whole.score))
        return pieces


def _candidate(found: NodeWithScore) -> GivenCandidate:
    node = found.node
    text = node.get_content()
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    is_placed = start is not None and end is not None and end - start == len(text)
    title = next((str(node.metadata[key]) for key in ("title", "file_name") if node.metadata.get(key)), None)
    return candidate(
        text,
        node.ref_doc_id or node.node_id,
        score=found.score,
        title=title,
        start=start if is_placed else None,
    )
