"""Tables of Arrow get their vectors from a child; on Ray from several."""

import os
import signal
import subprocess

import cento
import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
np = pytest.importorskip("numpy", reason="numpy is not installed")

from cento.arrow import ArrowEmbedder, embed
from conftest import TINY, is_alive

TEXTS = [f"text number {n} of many, which the moon moves" for n in range(2_500)]


def vectors(table):
    return np.stack(table["vector"].to_numpy(zero_copy_only=False))


@pytest.fixture(scope="module")
def matrix(tmp_path_factory, own_settings):
    """The vectors of the texts, by the command."""
    folder = tmp_path_factory.mktemp("matrix")
    (folder / "texts.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in TEXTS))
    command = [cento.binary(), "embed", folder / "texts.jsonl", "-o", folder / "out.npy", "--model", TINY, "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return np.load(folder / "out.npy")


def test_tables_get_the_vectors_of_the_command(matrix):
    table = pa.table({"n": range(len(TEXTS)), "text": pa.array(TEXTS).dictionary_encode()})
    with ArrowEmbedder(model=TINY) as embedder:
        made = embedder(table)
        assert made.column_names == ["n", "text", "vector", "n_tokens", "truncated"]
        assert (vectors(made) == matrix).all() and made["n"].to_pylist() == list(range(len(TEXTS)))
        assert (vectors(embedder(table.slice(7, 3))) == matrix[7:10]).all(), "the child is asked again"
        assert embedder(table.slice(0, 0)).num_rows == 0
        assert made.schema.metadata[b"cento.model"].decode() == TINY
        nulls = embedder(pa.table({"text": pa.array([None, TEXTS[0]])}))
        assert nulls["vector"].null_count == 1 and nulls["vector"][1].as_py() == matrix[0].tolist()
    parts = pa.Table.from_arrays([pa.array(TEXTS)], ["words"]).to_batches(max_chunksize=900)
    assert (np.concatenate([vectors(made) for made in embed(parts, column="words", model=TINY)]) == matrix).all()
    with ArrowEmbedder(model=TINY, output_type="f16") as halves:
        assert (vectors(halves(table.slice(0, 9))) == matrix[:9].astype(np.float16)).all()


def test_what_cannot_be_embedded_is_said():
    with pytest.raises(cento.CommandError, match="no model"):
        ArrowEmbedder(model="nowhere-at-all")
    with ArrowEmbedder(model=TINY) as embedder:
        with pytest.raises(KeyError, match="words"):
            embedder(pa.table({"words": TEXTS[:1]}))
        with pytest.raises(TypeError, match="int64"):
            embedder(pa.table({"text": [1]}))
        with pytest.raises(ValueError, match="vector"):
            embedder(pa.table({"text": TEXTS[:1], "vector": [1]}))
        assert embedder(pa.table({"text": TEXTS[:1]})).num_rows == 1, "none of that costs the child"
    with ArrowEmbedder(model=TINY) as embedder:
        os.kill(embedder._child.pid, signal.SIGKILL)
        with pytest.raises(cento.CommandError):
            embedder(pa.table({"text": TEXTS}))
    assert not is_alive(embedder._child.pid)


def test_actors_of_ray_give_the_vectors_of_the_command(matrix, tmp_path):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    import cento.ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        dataset = ray.data.from_arrow(pa.table({"n": range(len(TEXTS)), "text": TEXTS}))
        for concurrency in (1, 2):
            made = cento.ray.embed(
                dataset,
                concurrency=concurrency,
                num_cpus=0.5,
                batch_size=200,
                model=TINY,
                use_cache=True,
                cache=tmp_path,
            )
            rows = sorted(made.take_all(), key=lambda row: row["n"])
            assert (np.array([row["vector"] for row in rows], dtype=np.float32) == matrix).all()
    finally:
        ray.shutdown()
