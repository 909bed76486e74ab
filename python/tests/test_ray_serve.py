"""A collection's parts on servers that Ray Serve keeps, against the real one: right answers, kills, a changed number."""

import json
import os
import signal
import threading
import time

import pytest
from conftest import TINY, is_alive

import cento

ray = pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("ray.serve", reason="ray[serve] is not installed")

QUESTIONS = [f"the tide of day {n}" for n in range(6)] + ["when does the sea rise", "note"]
SECONDS = int(os.environ.get("CENTO_RAY_SECONDS", "12"))  # of kills; two minutes where it is set so
N_SHARDS = (1, 2, 5)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, own_settings):
    """Notes, a collection of them, and the same in 1, 2 and 5 parts."""
    folder = tmp_path_factory.mktemp("ray")
    for n in range(30):
        path = folder / "notes" / f"note{n:02}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# Note {n}\n\nThe tide of day {n} comes.\n\n" + "The sea rises, and falls.\n\n" * (n % 5))
    cento.index(folder / "notes", collection=folder / "whole", model=TINY)
    for n_shards in N_SHARDS:
        for part in range(1, n_shards + 1):
            parts = {"part": f"{part}/{n_shards}"} if n_shards > 1 else {}
            cento.index(folder / "notes", collection=folder / f"part{part}-{n_shards}", model=TINY, **parts)
    return folder


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=16, include_dashboard=False, log_to_driver=False)  # more than there are: the servers wait a lot
    yield
    from ray import serve

    serve.shutdown()
    ray.shutdown()


def parts(corpus, n_shards):
    return [corpus / f"part{part}-{n_shards}" for part in range(1, n_shards + 1)]


def answers(client):
    """A run and contexts, as bytes, without the generation, which of shards is the sum."""
    run = client.run({str(n): question for n, question in enumerate(QUESTIONS)}, k=1000)
    contexts = [client.context(question, budget=200) for question in QUESTIONS]
    told = [[c.text, c.n_tokens, [str(citation) for citation in c.citations], str(c.certificate)] for c in contexts]
    return json.dumps([run, told], sort_keys=True)


def children():
    """The servers that run now, by their command lines."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().decode().split("\0")
            except OSError:
                continue
            if len(words) > 2 and words[1] == "serve" and "--until-stdin-ends" in words:
                found[int(entry)] = words
    return found


def servers_of(folder):
    return [pid for pid, words in children().items() if f"--collection={folder}" in words]


@pytest.fixture(scope="module")
def expected(corpus):
    with cento.Server(corpus / "whole", model=TINY) as server:
        return answers(server)


@pytest.mark.parametrize("n_shards", N_SHARDS)
def test_parts_answer_as_the_whole(cluster, corpus, expected, n_shards):
    import cento.ray

    served = cento.ray.serve(parts(corpus, n_shards), model=TINY, name=f"of{n_shards}", num_cpus=0.1)
    try:
        assert [len(shard) for shard in served.shards()] == [1] * n_shards
        with served.client() as client:
            assert answers(client) == expected
        with pytest.raises(cento.CentoError), cento.Client(served.url) as stranger:
            stranger.search("tide")
    finally:
        served.close()
    deadline = time.monotonic() + 60
    while pids := [pid for folder in parts(corpus, n_shards) for pid in servers_of(folder)]:
        assert time.monotonic() < deadline, pids
        time.sleep(0.1)


def test_killed_servers_are_replaced_and_no_answer_is_wrong(cluster, corpus):
    import cento.ray

    folders = parts(corpus, 2)
    with cento.Server(corpus / "whole", model=TINY) as whole:
        right = {question: [hit.id for hit in whole.search(question, k=20)] for question in QUESTIONS}
    served = cento.ray.serve(folders, replicas=2, model=TINY, name="killed", num_cpus=0.1)
    try:
        done, seconds, refused, recovered = threading.Event(), [], [], []

        def ask(from_):
            with served.client(retries=0) as client:
                n = from_
                while not done.is_set():
                    question, began = QUESTIONS[n % len(QUESTIONS)], time.monotonic()
                    try:
                        assert [hit.id for hit in client.search(question, k=20)] == right[question]
                        seconds.append(time.monotonic() - began)
                    except cento.ApiError as error:  # of a shard with one server left, or with none that answers
                        assert error.code == "shard" and "http://" in str(error), error
                        refused.append(str(error))
                    n += 1

        failures = []

        def guarded(from_):
            try:
                ask(from_)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=guarded, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        n_killed, began = 0, time.monotonic()
        while (took := time.monotonic() - began) < SECONDS or (n_killed < 2 and took < 20 * SECONDS):  # on any machine
            alive = servers_of(folders[n_killed % 2])
            if len(alive) > 1 or (alive and SECONDS > 60):
                try:
                    os.kill(alive[0], signal.SIGKILL)
                except ProcessLookupError:
                    continue  # it was ending already
                n_killed += 1
                killed = time.monotonic()
                while is_alive(alive[0]) or len(servers_of(folders[(n_killed - 1) % 2])) < len(alive):
                    if time.monotonic() - killed > 30 or SECONDS > 60:
                        break
                    time.sleep(0.05)
                else:
                    recovered.append(time.monotonic() - killed)
            time.sleep(1)
        done.set()
        for thread in threads:
            thread.join()
        assert not failures, failures
        seconds.sort()
        print(
            f"{n_killed} killed in {took:.0f} s; {len(seconds)} right answers, {len(refused)} clear errors, none wrong; "
            f"p50 {seconds[len(seconds) // 2] * 1000:.0f} ms, p99 {seconds[int(len(seconds) * 0.99)] * 1000:.0f} ms; "
            f"replaced in {', '.join(f'{second:.1f}' for second in recovered)} s"
        )
        assert n_killed >= 2 and len(seconds) > 10 * n_killed, (n_killed, len(seconds))
        # Every place is filled again, and another call changes their number.
        again = cento.ray.serve(folders, replicas=1, model=TINY, name="killed", num_cpus=0.1)
        deadline = time.monotonic() + 60
        while [len(servers_of(folder)) for folder in folders] != [1, 1]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with again.client() as client:
            assert [hit.id for hit in client.search(QUESTIONS[0], k=20)] == right[QUESTIONS[0]]
    finally:
        served.close()


def test_a_killed_coordinator_is_replaced(cluster, corpus):
    import cento.ray

    served = cento.ray.serve(parts(corpus, 1), model=TINY, name="front", num_cpus=0.1)
    try:
        before = served.url
        [pid] = [pid for pid, words in children().items() if any("--shards-from=" in word for word in words)]
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while True:
            assert time.monotonic() < deadline
            try:
                if served.url != before:
                    with served.client() as client:
                        assert client.search("tide", k=3)
                    break
            except (RuntimeError, cento.ConnectionFailed):
                pass
            time.sleep(0.1)
    finally:
        served.close()


def test_what_cannot_be_served_is_said(cluster, corpus):
    import cento.ray

    with pytest.raises(ValueError, match="at least"):
        cento.ray.serve([], name="none")
    with pytest.raises(ValueError, match="at least"):
        cento.ray.serve(corpus / "whole", replicas=0, name="none")
