"""Questions: every answer is that of the command line, and errors carry what the server says."""

import json
import threading

import cento
import pytest
from cento import types
from cento._decode import decode
from conftest import TINY


def test_a_ranking_is_that_of_the_command_line(server, place):
    ranking = server.search("what moves the sea", k=3)
    printed = json.loads(
        cento.run(
            "search",
            "what moves the sea",
            "-k",
            "3",
            "--json",
            "--quiet",
            "--collection",
            str(place / "collection"),
            "--model",
            TINY,
        )
    )
    assert [(hit.id, hit.score, hit.text) for hit in ranking] == [
        (hit["id"], hit["score"], hit["text"]) for hit in printed["hits"]
    ]
    assert len(ranking) == 3 and ranking[0].rank == 1 and ranking.generation == 1
    assert isinstance(ranking[0].span, tuple) and isinstance(ranking[0].contributions[0], types.Contribution)


def test_every_field_of_an_answer_is_read(server):
    raw = server.request("POST", "/v1/context", {"query": "what moves the sea", "budget": 200})
    assert written(decode(types.ContextAnswer, raw), raw)
    raw = server.request("GET", "/v1/collections/collection")
    assert written(decode(types.Status, raw), raw)


def written(value, raw):
    """A decoded value says all that the JSON does."""
    if isinstance(raw, dict) and not isinstance(value, dict):
        return all(written(getattr(value, key, getattr(value, f"{key}_", None)), item) for key, item in raw.items())
    if isinstance(raw, list):
        return len(value) == len(raw) and all(map(written, value, raw))
    return value == raw


def test_a_context_keeps_its_budget_and_cites_characters(server, place):
    context = server.context("what moves the sea", budget=60)
    assert 0 < context.n_tokens <= 60 and str(context) == context.text
    for cited in context.citations:
        text = server.text(cited.document).text
        piece = text[cited.characters.start : cited.characters.end]
        assert piece.encode() == text.encode()[cited.span.start : cited.span.end]
        assert piece.strip() in context.text or cited.cut


def test_spans_of_hits_are_told_in_characters(server):
    hits = server.search("moon star bread matter", k=10)
    assert any(not hit.text.isascii() for hit in hits)
    for hit, (start, end) in zip(hits, server.characters(hits)):
        assert server.text(hit.document).text[start:end] == hit.text


def test_many_questions_are_answered_as_each_alone(server):
    queries = {"1": "tide", "a b": "yeast", "ü": "stars of gas", "none": "zzz"}
    found = server.search_many(queries, k=2)
    assert list(found) == list(queries)
    for id, query in queries.items():
        assert found[id].hits == server.search(query, k=2).hits
    run = server.run(queries, k=5)
    assert list(run) == list(queries)
    best = max(run["1"], key=run["1"].get)
    assert best == found["1"][0].document


def test_a_batch_that_fails_midway_is_an_error(server):
    with pytest.raises(cento.RequestError) as error:
        server.search_many({"1": "tide", "2": " "})
    assert error.value.code == "empty_query"


def test_vectors_come_as_lists_and_as_a_matrix(server):
    numpy = pytest.importorskip("numpy", reason="NumPy is not installed")
    texts = [f"text {number}" for number in range(600)]  # more than one request
    rows, matrix = server.embed(texts), server.embed_array(texts)
    assert matrix.shape == (600, len(rows[0])) and matrix.dtype == numpy.float32
    assert (matrix == numpy.array(rows, dtype=numpy.float32)).all()
    assert numpy.abs((matrix**2).sum(axis=1) - 1).max() < 1e-5
    assert server.embed_array([]).shape == (0, 0) and server.embed([]) == []
    listed = server.neighbors(rows[:3], k=2)
    assert listed == server.neighbors(matrix[:3], k=2) == server.neighbors(matrix[:3].astype("f8"), k=2)
    assert len(listed.neighbors) == 3 and len(listed.neighbors[0].ids) == 2
    with pytest.raises(TypeError):
        server.embed("one text")


def test_refusals_are_exceptions_that_say_what_is_wrong(server):
    with pytest.raises(cento.RequestError) as error:
        server.search("tide", kk=3)
    assert (error.value.status, error.value.code, error.value.parameter) == (400, "unknown_field", "kk")
    assert "did you mean" in str(error.value) and error.value.hint
    with pytest.raises(cento.NotFound) as error:
        server.search("tide", collection="other")
    assert error.value.code == "unknown_collection" and error.value.hint in str(error.value)
    with pytest.raises(cento.NotAllowed) as error:
        server.add([{"id": "new", "text": "text"}])
    assert error.value.code == "read_only"
    with pytest.raises(cento.NotFound):
        server.text("nothing")
    with pytest.raises(ValueError):
        server.search(vector=[float("nan")])


def test_an_exception_survives_pickling(server):
    import pickle

    with pytest.raises(cento.RequestError) as error:
        server.search("")
    again = pickle.loads(pickle.dumps(error.value))
    assert (type(again), again.code, str(again)) == (cento.RequestError, error.value.code, str(error.value))


def test_nobody_there_is_a_connection_that_failed(tmp_path):
    client = cento.Client("http://127.0.0.1:1", timeout=5)
    with pytest.raises(cento.ConnectionFailed, match="127.0.0.1:1"):
        client.collections()
    with pytest.raises(ValueError):
        cento.Client("ftp://127.0.0.1")


def test_what_the_collection_holds_is_told(server):
    assert server.collections() == ["collection"]
    status = server.status()
    assert status.n_documents == 3 and status.config.chunk_tokens == "16"
    listed = {document.id: document for document in server.documents().documents}
    assert set(listed) == {"notes/tides.md", "notes/bread.md", "notes/sub/stars.txt"}
    assert [found.id for found in server.documents('type = "text"').documents] == ["notes/sub/stars.txt"]
    assert any(section.heading == "Spring tides" for section in server.sections("notes/tides.md").sections)
    assert "title" in [field.name for field in server.fields().fields]
    assert server.text("notes/bread.md").text.startswith("# Bread")
    assert server.why_not("notes/bread.md", "what moves the sea", budget=60).id
    assert server.trace("what moves the sea", budget=60)["assembly"]


def test_threads_share_a_client(server):
    wanted = server.search("moon", k=3)
    failures = []

    def ask():
        for _ in range(10):
            if server.search("moon", k=3) != wanted:
                failures.append("another answer")

    threads = [threading.Thread(target=ask) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures


def test_given_passages_are_assembled_by_server_and_program_alike(server):
    passages = [
        {"document": "tides", "text": "Der Mond bewegt das Meer – täglich.", "score": 0.8},
        {"document": "tides", "text": "The moon moves the sea 🌊.", "score": 0.7, "title": "Tides"},
        {"document": "bread", "text": "Yeast lifts the dough.", "score": 0.1},
    ]
    made = server.assemble("what moves the sea", passages, budget=60)
    assert made == cento.assemble("what moves the sea", passages, budget=60)
    assert made.n_tokens <= 60 and made.certificate and made.certificate.gap == 0
    for source in made.sources:
        whole = passages[source.passage]
        assert whole["text"][source.start : source.end] == source.text and source.document == whole["document"]
        assert source.text in made.text
    assert server.assemble_trace("what moves the sea", passages)["assembly"]


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_hits_become_frames(server, name):
    pytest.importorskip(name, reason=f"{name} is not installed")
    for query in ("what moves the sea", "moon"):
        ranking = server.search(query, k=2)
        frame = getattr(ranking, {"pyarrow": "to_arrow"}.get(name, f"to_{name}"))()
        columns = list(frame.column_names if name == "pyarrow" else frame.columns)
        assert columns[:4] == ["query", "rank", "id", "document"]
        assert frame.shape == (2, 11)
    empty = server.search("moon", k=2, filter='title = "none"')
    assert len(getattr(empty, {"pyarrow": "to_arrow"}.get(name, f"to_{name}"))()) == 0
