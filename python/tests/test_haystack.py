"""Haystack: the components in a pipeline, written down and read again."""

import datetime
import json

import cento
import pytest

pytest.importorskip("haystack", reason="haystack-ai is not installed")

from cento.haystack import CentoAssembler, CentoRetriever, expression
from conftest import TINY, write_notes
from haystack import Document, Pipeline
from haystack.utils import Secret


def test_a_pipeline_retrieves_and_assembles(server):
    pipeline = Pipeline()
    pipeline.add_component("retriever", CentoRetriever(server.url, top_k=5))
    pipeline.add_component("assembler", CentoAssembler(budget=40))
    pipeline.connect("retriever.documents", "assembler.documents")
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["cento.haystack"])
    question = "what moves the sea"
    for made in (pipeline, again):
        answer = made.run({"retriever": {"query": question}, "assembler": {"query": question}})["assembler"]
        assert 0 < answer["facts"]["n_tokens"] <= 40 and "moon" in answer["context"]
        for part in answer["documents"]:
            whole = server.text(part.meta["document"]).text
            assert part.content in whole and part.meta["citation"] >= 1


def test_documents_say_where_they_stand(server):
    retriever = CentoRetriever(server.url)
    found = retriever.run("moon star bread matter", top_k=4)["documents"]
    assert len(found) == 4
    for document in found:
        whole = server.text(document.meta["document"]).text
        assert whole[document.meta["start"] : document.meta["end"]] == document.content
    wanted = {"field": "meta.type", "operator": "==", "value": "text"}
    assert {found.meta["document"] for found in retriever.run("moon", wanted)["documents"]} == {"notes/sub/stars.txt"}
    with pytest.raises(ValueError):
        CentoRetriever(server.url, top_k=0)


@pytest.fixture(scope="module")
def dated(tmp_path_factory, own_settings):
    """A server of the notes and of a document with metadata."""
    folder = tmp_path_factory.mktemp("dated")
    write_notes(folder)
    facts = {"_id": "dated", "text": "A day.", "year": 2024, "draft": True, "day": "2024-05-16"}
    (folder / "notes/dated.jsonl").write_text(json.dumps(facts) + "\n")
    cento.index(folder / "notes", collection=folder / "collection", model=TINY)
    with cento.Server(folder / "collection", model=TINY) as server:
        yield server


@pytest.mark.parametrize(
    ("filters", "written", "admits"),
    [
        ({"field": "meta.type", "operator": "!=", "value": "text"}, '`type` != "text"', 3),
        ({"field": "title", "operator": "in", "value": ["Tides", "Bread"]}, '`title` in ("Tides", "Bread")', 2),
        ({"field": "meta.year", "operator": "==", "value": None}, "`year` is missing", 3),
        ({"field": "year", "operator": ">=", "value": 2020}, "`year` >= 2020", 1),
        ({"field": "draft", "operator": "==", "value": True}, "`draft` = true", 1),
        ({"field": "day", "operator": "<", "value": datetime.date(2024, 5, 17)}, "`day` < 2024-05-17", 1),
        (
            {
                "operator": "NOT",
                "conditions": [
                    {"field": "type", "operator": "==", "value": "text"},
                    {"field": "title", "operator": "==", "value": 'a "q" \\'},
                ],
            },
            'not (`type` = "text" and `title` = "a \\"q\\" \\\\")',
            4,
        ),
        (
            {
                "operator": "OR",
                "conditions": [
                    {"field": "type", "operator": "==", "value": "text"},
                    {"field": "title", "operator": "==", "value": "Bread"},
                ],
            },
            '(`type` = "text" or `title` = "Bread")',
            2,
        ),
    ],
)
def test_filters_of_haystack_are_filters_of_cento(dated, filters, written, admits):
    assert expression(filters) == written
    assert len(dated.documents(written).documents) == admits


def test_a_filter_that_is_none_is_told():
    for filters in ({"operator": "XOR"}, {"operator": "AND"}, {"field": "a", "operator": "~", "value": 1}, {}):
        with pytest.raises(ValueError):
            expression(filters)


def test_an_assembler_takes_documents_of_any_store(server):
    texts = ["The moon moves the sea – daily.", "Yeast lifts the dough.", ""]
    documents = [Document(content=text, meta={"own": at}) for at, text in enumerate(texts)]
    answer = CentoAssembler(budget=30, url=server.url).run("what moves the sea", documents)
    assert answer["facts"]["n_tokens"] <= 30
    assert all(part.content in texts[part.meta["own"]] for part in answer["documents"])
    assert CentoAssembler().run("what", [])["context"] == ""
    assert CentoAssembler().run("what", documents, budget=20)["facts"]["budget_tokens"] == 20


def test_a_key_stays_a_secret(monkeypatch, server):
    monkeypatch.setenv("CENTO_TEST_KEY", "moon")
    written = CentoRetriever(server.url, api_key=Secret.from_env_var("CENTO_TEST_KEY")).to_dict()
    assert "moon" not in str(written)
    assert CentoRetriever.from_dict(written).api_key.resolve_value() == "moon"
