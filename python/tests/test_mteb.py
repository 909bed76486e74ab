"""mteb: its protocols, and a task run end to end with the figures of `cento run` and `cento eval`."""

import json
import os
import pathlib

import pytest

mteb = pytest.importorskip("mteb", reason="mteb is not installed")
datasets = pytest.importorskip("datasets", reason="datasets is not installed")

import cento
from cento.mteb import CentoEncoder, CentoSearch
from conftest import TINY
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models.models_protocols import EncoderProtocol, SearchProtocol

METADATA = {
    "description": "A set of this machine.",
    "dataset": {"path": "local/set", "revision": "1"},
    "type": "Retrieval",
    "category": "t2t",
    "modalities": ["text"],
    "eval_splits": ["test"],
    "eval_langs": ["eng-Latn"],
    "main_score": "ndcg_at_10",
}


def task(folder, n_queries):
    """A folder as BEIR has it, as a task of mteb; and the same cut to so many questions, for Cento."""
    lines = [line.split("\t") for line in next((folder / "qrels").iterdir()).read_text().splitlines()]
    rows = lines[1:]
    judged = list(dict.fromkeys(row[0] for row in rows))[:n_queries]
    qrels = {id: {row[-2]: int(row[-1]) for row in rows if row[0] == id} for id in judged}
    texts = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    texts = {text["_id"]: text["text"] for text in texts if text["_id"] in qrels}
    corpus = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()]

    class Local(AbsTaskRetrieval):
        metadata = TaskMetadata(name="Local", **METADATA)

        def load_data(self, *_, **__):
            self.corpus = {
                "test": {line["_id"]: {"title": line.get("title", ""), "text": line["text"]} for line in corpus}
            }
            self.queries = {"test": texts}
            self.relevant_docs = {"test": qrels}
            self.convert_v1_dataset_format_to_v2(num_proc=None)
            self.data_loaded = True

    return Local(), texts, qrels


def small(folder):
    folder.mkdir()
    texts = {
        "tides": "The moon moves the sea – daily.",
        "bread": "Yeast lifts the dough.",
        "stars": "The sun is a star.",
        "gas": "Stars are clouds of gas.",
        "dough": "A dough rests.",
        "sea": "The sea is deep.",
    }
    corpus = [{"_id": id, "title": id.title(), "text": text} for id, text in texts.items()]
    queries = {"1": "what moves the sea", "2": "yeast and dough", "3": "sun and star"}
    (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in corpus))
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": id, "text": text}) + "\n" for id, text in queries.items())
    )
    (folder / "qrels").mkdir()
    qrels = "query-id\tcorpus-id\tscore\n1\ttides\t1\n1\tsea\t1\n2\tbread\t1\n2\tdough\t1\n3\tstars\t2\n"
    (folder / "qrels/test.tsv").write_text(qrels)
    return folder


def compare(folder, place, n_queries, model, cache=None):
    """The figures that mteb gives and those of Cento's own commands."""
    made, texts, qrels = task(folder, n_queries)
    search = CentoSearch(index_options={"model": model, "cache": cache}, folder=place)
    result = mteb.evaluate(search, made, cache=None, overwrite_strategy="always").task_results[0]
    search.close()
    theirs = result.scores["test"][0]
    (place / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": id, "text": text}) + "\n" for id, text in texts.items())
    )
    lines = [f"{id}\t{document}\t{grade}\n" for id, grades in qrels.items() for document, grade in grades.items()]
    (place / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))  # an id may have blanks
    collection = next(place.glob("*/collection"))
    run = ["run", "--topics", str(place / "queries.jsonl"), "--collection", str(collection), "--model", model]
    cento.run(*run, "-o", str(place / "run"), "--quiet")
    measures = [part for measure in ("nDCG@10", "R@100", "AP", "RR@10") for part in ("-m", measure)]
    ours = cento.run("eval", str(place / "qrels.tsv"), str(place / "run"), *measures, "--json", "--quiet")
    return theirs, figures(json.loads(ours))


def figures(answer):
    """The means of an evaluation, wherever they stand in it."""
    if isinstance(answer, dict):
        if "nDCG@10" in answer and isinstance(answer["nDCG@10"], float):
            return answer
        answer = list(answer.values())
    if isinstance(answer, list):
        return next(filter(None, map(figures, answer)), None)
    return None


def agree(theirs, ours):
    assert theirs["ndcg_at_10"] == pytest.approx(ours["nDCG@10"], abs=6e-6)  # mteb rounds to five digits
    assert theirs["recall_at_100"] == pytest.approx(ours["R@100"], abs=6e-6)
    assert theirs["map_at_1000"] == pytest.approx(ours["AP"], abs=6e-6)


def test_a_task_has_the_figures_of_cento(tmp_path):
    theirs, ours = compare(small(tmp_path / "set"), tmp_path / "place", 3, TINY)
    agree(theirs, ours)
    assert isinstance(CentoSearch(), SearchProtocol)


@pytest.mark.skipif(
    not os.environ.get("CENTO_DATA") or not os.environ.get("CENTO_REAL_MODEL"),
    reason="CENTO_DATA or CENTO_REAL_MODEL names no folder",
)
@pytest.mark.parametrize("name", ["xquad.en", "scifact"])
def test_a_judged_set_has_the_figures_of_cento(tmp_path, name):
    folder = pathlib.Path(os.environ["CENTO_DATA"], name)
    cache = os.environ.get("CENTO_REAL_CACHE")  # of embeddings: without it the corpus is embedded now
    theirs, ours = compare(folder, tmp_path, 10_000, os.environ["CENTO_REAL_MODEL"], cache)
    print(name, "mteb", theirs["ndcg_at_10"], "cento", ours["nDCG@10"])
    agree(theirs, ours)


def test_an_encoder_is_one_for_mteb(server, tmp_path):
    numpy = pytest.importorskip("numpy")
    encoder = CentoEncoder(server)
    assert isinstance(encoder, EncoderProtocol)
    made, _, _ = task(small(tmp_path / "set"), 3)
    result = mteb.evaluate(encoder, made, cache=None, overwrite_strategy="always").task_results[0]
    assert 0 <= result.scores["test"][0]["ndcg_at_10"] <= 1
    rows = encoder.encode([{"text": ["a", "b"]}, {"text": ["c"]}], prompt_type="query")
    assert (rows == numpy.float32(server.embed(["a", "b", "c"], kind="query"))).all()
    assert float(encoder.similarity_pairwise(rows, rows)[2]) == pytest.approx(1, abs=1e-5)
    assert tuple(encoder.similarity(rows, rows[:2]).shape) == (3, 2)


def test_a_conversation_is_told(tmp_path):
    search = CentoSearch(index_options={"model": TINY})
    metadata = TaskMetadata(name="Local", **METADATA)
    given = {"task_metadata": metadata, "hf_split": "test", "hf_subset": "default"}
    with pytest.raises(ValueError, match="index a corpus"):
        search.search([{"id": "1", "text": "moon"}], top_k=3, **given)
    search.index([{"id": "a", "text": "moon"}, {"id": "b", "text": "sea"}], **given)
    with pytest.raises(ValueError, match="conversation"):
        search.search([{"id": "1", "text": [{"role": "user", "content": "moon"}]}], top_k=3, **given)
    among = search.search([{"id": "1", "text": "moon"}], top_k=3, top_ranked={"1": ["b"]}, **given)
    assert list(among["1"]) == ["b"]
    search.close()
