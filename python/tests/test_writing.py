"""Changing a collection through a server that lets its clients do so."""

import cento
import pytest
from conftest import TINY


@pytest.fixture()
def writable(fresh):
    root = [f"notes={fresh / 'notes'}"]
    with cento.Server(fresh / "collection", model=TINY, writable=True, root=root) as server:
        yield server


def test_documents_come_change_and_go(writable):
    documents = [{"id": "geyser", "title": "Geysers", "text": "Hot water rises.", "metadata": {"year": 2024}}]
    assert writable.add(documents).n_added == 1
    [found] = writable.documents("year = 2024").documents
    assert found.id == "geyser" and found.metadata == {"year": 2024}
    documents[0]["text"] = "Hot water rises – often."
    assert writable.add(documents).n_changed == 1
    assert writable.text("geyser").text.endswith("Hot water rises – often.")
    assert writable.delete(filter="year = 2024").n_removed == 1
    assert writable.delete(["notes/bread.md"]).n_removed == 1
    assert writable.compact(all=True).generation > 1
    assert writable.index("notes").n_added == 1
    assert [job.kind for job in writable.jobs()] == ["index", "compact", "delete", "delete", "add", "add"]
    assert writable.job(writable.jobs()[0].id).state == "done"
    cache = writable.cache()
    assert cache.models[0].n_embeddings > 0 and cache.n_bytes <= cache.max_bytes


def test_what_a_job_cannot_do_is_an_exception(writable):
    with pytest.raises(cento.ApiError) as error:
        writable.add([{"id": "notes/bread.md", "text": "mine"}])
    assert error.value.code == "id_taken"
    with pytest.raises(cento.ApiError):
        writable.delete(["nothing"])
    with pytest.raises(cento.NotFound):
        writable.job("nothing")
    with pytest.raises(cento.RequestError):
        writable.add([])
    assert writable.status().n_documents == 3


def test_one_waits_no_longer_than_wanted(writable):
    many = [{"id": f"d{number}", "text": f"word {number} " * 200} for number in range(3000)]
    with pytest.raises(TimeoutError, match="it goes on"):
        writable.add(many, wait=0)
    with pytest.raises(cento.Conflict):
        writable.compact()
    [job] = [job for job in writable.jobs() if job.state == "running"]
    writable.cancel(job.id)
    with pytest.raises(cento.JobFailed) as error:
        writable.wait(job.id)
    assert error.value.code == "cancelled"
    assert writable.status().n_documents == 3
