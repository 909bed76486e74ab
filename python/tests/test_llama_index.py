"""LlamaIndex: nodes with spans of characters, embeddings, and a postprocessor with a hard budget."""

import asyncio

import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from cento.llama_index import CentoEmbedding, CentoPostprocessor, CentoRetriever
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode


def test_nodes_have_spans_of_characters(server):
    retriever = CentoRetriever(server, k=5)
    nodes = retriever.retrieve("moon star bread matter")
    assert len(nodes) == 5 and asyncio.run(retriever.aretrieve("moon star bread matter")) == nodes
    for found in nodes:
        whole = server.text(found.node.ref_doc_id).text
        assert whole[found.node.start_char_idx : found.node.end_char_idx] == found.node.text
    scores = [found.score for found in nodes]
    assert scores == sorted(scores, reverse=True)


def test_an_index_of_llama_index_embeds_with_it(server):
    embedding = CentoEmbedding(client=server)
    assert embedding.get_query_embedding("tide") == server.embed(["tide"], kind="query")[0]
    assert asyncio.run(embedding.aget_text_embedding_batch(["a", "b"])) == server.embed(["a", "b"])
    texts = ["the moon moves the sea", "yeast lifts the dough", "a star ends as a dwarf"]
    index = VectorStoreIndex.from_documents([Document(text=text) for text in texts], embed_model=embedding)
    [found] = index.as_retriever(similarity_top_k=1).retrieve("yeast lifts the dough")
    assert found.node.text == texts[1] and found.score > 0.99


@pytest.mark.parametrize("by", ["program", "server"])
def test_a_postprocessor_keeps_its_budget(server, by):
    client = server if by == "server" else None
    whole = "Ebb – flow. " + "The moon moves the sea. " * 20
    nodes = SentenceSplitter(chunk_size=40, chunk_overlap=15).get_nodes_from_documents([Document(text=whole)])
    nodes = [NodeWithScore(node=node, score=1 / (1 + at)) for at, node in enumerate(nodes)]
    [made] = CentoPostprocessor(budget=50, client=client).postprocess_nodes(nodes, query_str="what moves the sea")
    facts = made.node.metadata
    assert 0 < facts["n_tokens"] <= 50 and facts["citations"]
    assert made.node.get_content(metadata_mode="llm") == made.node.text
    parts = CentoPostprocessor(budget=50, client=client, deliver="passages").postprocess_nodes(nodes, query_str="what")
    for part in parts:
        assert whole[part.node.start_char_idx : part.node.end_char_idx] == part.node.text
    with pytest.raises(ValueError):
        CentoPostprocessor().postprocess_nodes(nodes)
    assert CentoPostprocessor().postprocess_nodes([], query_str="what") == []


def test_nodes_without_scores_are_taken_as_they_come():
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in ("the moon moves the sea", "yeast")]
    [made] = CentoPostprocessor(budget=50).postprocess_nodes(nodes, query_str="moon")
    assert "moon" in made.node.text


def test_a_query_engine_reads_the_context(server):
    engine = RetrieverQueryEngine.from_args(
        CentoRetriever(server, k=5), llm=MockLLM(), node_postprocessors=[CentoPostprocessor(budget=40)]
    )
    answer = engine.query("what moves the sea")
    [source] = answer.source_nodes
    assert source.node.metadata["n_tokens"] <= 40 and source.node.text in str(answer)
