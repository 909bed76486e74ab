"""LangChain: its own suites of tests, and what the adapters add to them."""

import asyncio

import pytest

pytest.importorskip("langchain_core", reason="langchain-core is not installed")
pytest.importorskip("langchain_tests", reason="langchain-tests is not installed")

from cento.langchain import CentoCompressor, CentoContextRetriever, CentoEmbeddings, CentoRetriever
from langchain_core.documents import Document
from langchain_tests.integration_tests import EmbeddingsIntegrationTests, RetrieversIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests


class OfServer:
    @pytest.fixture(autouse=True)
    def _server(self, server):
        type(self).server = server


class TestRetriever(OfServer, RetrieversIntegrationTests):
    @property
    def retriever_constructor(self):
        return CentoRetriever

    @property
    def retriever_constructor_params(self):
        return {"client": self.server}

    @property
    def retriever_query_example(self):
        return "what moves the sea"


class TestContextRetriever(OfServer, RetrieversIntegrationTests):
    @property
    def retriever_constructor(self):
        return CentoContextRetriever

    @property
    def retriever_constructor_params(self):
        return {"client": self.server}

    @property
    def retriever_query_example(self):
        return "what moves the sea"

    @pytest.mark.xfail(reason="a context is one document, as long as its budget allows", strict=True)
    def test_k_constructor_param(self):
        super().test_k_constructor_param()

    @pytest.mark.xfail(reason="a context is one document, as long as its budget allows", strict=True)
    def test_invoke_with_k_kwarg(self, retriever):
        super().test_invoke_with_k_kwarg(retriever)


class TestEmbeddings(OfServer, EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self):
        return CentoEmbeddings

    @property
    def embedding_model_params(self):
        return {"client": self.server}


class TestEmbeddingsAlone(OfServer, EmbeddingsUnitTests):
    @property
    def embeddings_class(self):
        return CentoEmbeddings

    @property
    def embedding_model_params(self):
        return {"client": self.server}


def test_documents_say_where_they_stand(server):
    found = CentoRetriever(client=server, k=4).invoke("moon star bread")
    assert [document.metadata["rank"] for document in found] == [1, 2, 3, 4]
    for document in found:
        whole = server.text(document.metadata["document"]).text
        start = document.metadata["start_index"]
        assert whole[start : start + len(document.page_content)] == document.page_content
    only = CentoRetriever(client=server).invoke("moon", filter='type = "text"')
    assert only and {document.metadata["document"] for document in only} == {"notes/sub/stars.txt"}


def test_a_context_is_within_its_budget(server):
    retriever = CentoContextRetriever(client=server, budget=60)
    [document] = retriever.invoke("what moves the sea")
    assert document.metadata["n_tokens"] <= 60 and document.metadata["citations"]
    assert document.page_content == server.context("what moves the sea", budget=60).text
    [shorter] = retriever.invoke("what moves the sea", budget=30)
    assert shorter.metadata["n_tokens"] <= 30


def documents():
    texts = ["The moon moves the sea – daily.", "Yeast lifts the dough.", "Tides follow the moon 🌕.", "  "]
    return [Document(text, metadata={"source": f"s{at}", "own": at}) for at, text in enumerate(texts)]


@pytest.mark.parametrize("by", ["program", "server"])
def test_a_compressor_keeps_the_budget_of_any_retriever(server, by):
    client = server if by == "server" else None
    [made] = CentoCompressor(budget=25, client=client).compress_documents(documents(), "what moves the sea")
    assert 0 < made.metadata["n_tokens"] <= 25 and made.metadata["certificate"]
    parts = CentoCompressor(budget=25, client=client, deliver="passages").compress_documents(documents(), "what moves")
    for part in parts:
        assert part.page_content in documents()[part.metadata["own"]].page_content and part.metadata["citation"] >= 1
    assert CentoCompressor().compress_documents([], "what") == []
    assert asyncio.run(CentoCompressor(budget=25).acompress_documents(documents(), "what moves the sea"))


def test_langchain_compresses_with_it(server):
    classic = pytest.importorskip("langchain_classic.retrievers", reason="langchain-classic is not installed")
    retriever = classic.ContextualCompressionRetriever(
        base_compressor=CentoCompressor(budget=40), base_retriever=CentoRetriever(client=server)
    )
    [made] = retriever.invoke("what moves the sea")
    assert made.metadata["n_tokens"] <= 40 and "moon" in made.page_content


def test_a_splitter_of_langchain_gives_the_places(server):
    splitters = pytest.importorskip("langchain_text_splitters", reason="langchain-text-splitters is not installed")
    whole = "Ebbe – Flut. " + "Der Mond bewegt das Meer. " * 12
    splitter = splitters.RecursiveCharacterTextSplitter(chunk_size=120, chunk_overlap=60, add_start_index=True)
    parts = splitter.split_documents([Document(whole, metadata={"source": "meer"})])
    [made] = CentoCompressor(budget=400, options={"language": "german"}).compress_documents(parts, "Mond Meer")
    assert made.page_content.count("Ebbe") == 1  # what overlaps is delivered once
