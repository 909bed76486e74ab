"""ir_datasets in, ranx and ir_measures out: the same figures as `cento eval`."""

import json

import cento
import pytest
from cento import trec
from conftest import TINY

QRELS = {"1": {"tides": 1}, "2": {"bread": 1}, "3": {"stars": 1, "tides": 1}}
QUERIES = {"1": "what moves the sea", "2": "yeast and dough", "3": "sun and moon"}
TEXTS = {"tides": "The moon moves the sea – daily.", "bread": "Yeast lifts the dough.", "stars": "The sun is a star."}


@pytest.fixture(scope="module")
def judged(tmp_path_factory, own_settings):
    """A folder with a dataset, its collection and the run of Cento's own command."""
    folder = tmp_path_factory.mktemp("judged")
    (folder / "docs.tsv").write_text("".join(f"{id}\t{text}\n" for id, text in TEXTS.items()))
    (folder / "queries.tsv").write_text("".join(f"{id}\t{text}\n" for id, text in QUERIES.items()))
    lines = [f"{query} 0 {id} {grade}\n" for query, grades in QRELS.items() for id, grade in grades.items()]
    (folder / "qrels").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def served(judged):
    ir_datasets = pytest.importorskip("ir_datasets", reason="ir_datasets is not installed")
    dataset = ir_datasets.create_dataset(
        docs_tsv=str(judged / "docs.tsv"), queries_tsv=str(judged / "queries.tsv"), qrels_trec=str(judged / "qrels")
    )
    done = trec.index_ir_dataset(dataset, judged / "collection", model=TINY)
    assert done["n_added"] == 3
    with cento.Server(judged / "collection", model=TINY) as server:
        yield dataset, server


def evaluated(judged, run):
    trec.write_run(run, judged / "run")
    answer = cento.run("eval", str(judged / "qrels"), str(judged / "run"), "-m", "nDCG@10", "-m", "AP", "--json")
    return json.loads(answer)


def figures(answer):
    text = json.dumps(answer)
    assert "nDCG@10" in text
    return answer


def test_a_corpus_of_ir_datasets_is_indexed_and_judged(judged, served):
    dataset, server = served
    assert trec.queries(dataset) == QUERIES
    assert server.text("tides").text == TEXTS["tides"]
    run = server.run(trec.queries(dataset))
    command = ["run", "--topics", str(judged / "queries.tsv"), "--collection", str(judged / "collection")]
    cento.run(*command, "--model", TINY, "-o", str(judged / "own"), "--quiet")
    lines = [line.split() for line in (judged / "own").read_text().splitlines()]
    assert run == {id: {line[2]: float(line[4]) for line in lines if line[0] == id} for id in QUERIES}
    ir_measures = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    ndcg = ir_measures.nDCG @ 10
    theirs = ir_measures.calc_aggregate([ndcg, ir_measures.AP], list(dataset.qrels_iter()), trec.to_ir_measures(run))
    ours = evaluated(judged, run)
    assert theirs[ndcg] == pytest.approx(ours["nDCG@10"], abs=1e-9)
    assert theirs[ir_measures.AP] == pytest.approx(ours["AP"], abs=1e-9)


def test_ranx_judges_a_run(judged, served):
    ranx = pytest.importorskip("ranx", reason="ranx is not installed")
    run = served[1].run(QUERIES)
    theirs = ranx.evaluate(ranx.Qrels(QRELS), trec.to_ranx(run), ["ndcg@10", "map"])
    ours = evaluated(judged, run)
    assert theirs["ndcg@10"] == pytest.approx(ours["nDCG@10"], abs=1e-9)
    assert theirs["map"] == pytest.approx(ours["AP"], abs=1e-9)


def test_a_run_is_written_in_the_order_of_its_scores(tmp_path):
    trec.write_run({"q": {"a": 0.1, "b": 1 / 3, "c": 0.1}}, tmp_path / "run")
    assert (tmp_path / "run").read_text().splitlines() == [
        f"q Q0 b 1 {1 / 3!r} cento",
        "q Q0 c 2 0.1 cento",
        "q Q0 a 3 0.1 cento",
    ]
    for run in ({"q": {"a b": 1.0}}, {"": {"a": 1.0}}, {"q\n": {"a": 1.0}}):
        with pytest.raises(ValueError, match="blanks"):
            trec.write_run(run, tmp_path / "other")


def test_rankings_of_chunks_become_a_run_of_documents(server):
    found = server.search_many({"1": "moon star"}, k=10)
    run = trec.runs(found)
    assert run["1"] == {
        hit.document: max(other.score for other in found["1"] if other.document == hit.document) for hit in found["1"]
    }
