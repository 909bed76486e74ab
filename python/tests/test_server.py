"""A server of one's own: it starts, it ends, and it never outlives who started it."""

import os
import signal
import subprocess
import sys
import threading
import time

import cento
import pytest
from conftest import TINY, is_alive, program

#: Seconds within which a server that lost its owner must have ended.
PATIENCE = 20


def ends(pid):
    until = time.monotonic() + PATIENCE
    while is_alive(pid):
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            return False
        time.sleep(0.02)
    return True


def started(text, place, **popen):
    """A program that starts a server, says its process, and goes on as `text` says."""
    head = """
import os, sys, time, signal, threading, cento
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
server = cento.Server(given["collection"], model=given["model"])
server.collections()
print(server.pid, flush=True)
"""
    command = program(head + text, collection=str(place / "collection"), model=TINY)
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **popen)
    return child, int(child.stdout.readline())


def test_a_server_starts_and_ends_with_its_block(place):
    with cento.Server(place / "collection", model=TINY) as server:
        assert server.search("tide", k=1) and is_alive(server.pid)
        pid = server.pid
    assert not is_alive(pid)
    server.close()  # once more changes nothing
    with pytest.raises(cento.ConnectionFailed, match="ended with exit code 0"):
        server.search("tide")


def test_a_server_that_cannot_start_says_why(place, tmp_path):
    with pytest.raises(cento.StartError, match="nowhere") as error:
        cento.Server(tmp_path / "nowhere")
    assert error.value.exit_code == 3
    with pytest.raises(cento.StartError, match="--no-such") as error:
        cento.Server(place / "collection", no_such="option")
    assert error.value.exit_code == 2
    with pytest.raises(OSError):
        cento.Server(place / "collection", binary=str(tmp_path / "no-binary"))


def test_a_server_that_crashes_is_told(place):
    with cento.Server(place / "collection", model=TINY) as server:
        server.search("tide")
        os.kill(server.pid, signal.SIGKILL)
        ends(server.pid)
        with pytest.raises(cento.ConnectionFailed, match="exit code -9"):
            server.search("tide")


def test_the_log_goes_where_it_is_wanted(place, tmp_path):
    with open(tmp_path / "log", "w") as log, cento.Server(place / "collection", model=TINY, log=log) as server:
        server.search("tide")
    assert '"route":"/v1/search"' in (tmp_path / "log").read_text()


def test_no_server_is_left_when_its_program_ends_without_a_word(place):
    child, pid = started("", place)
    assert child.wait() == 0 and ends(pid)


def test_no_server_is_left_when_its_program_fails(place):
    child, pid = started("raise ValueError", place, stderr=subprocess.DEVNULL)
    assert child.wait() == 1 and ends(pid)


@pytest.mark.parametrize("told", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_server_is_left_when_its_program_is_killed(place, told):
    child, pid = started("time.sleep(600)", place, stderr=subprocess.DEVNULL)
    assert is_alive(pid)
    child.send_signal(told)
    child.wait()
    assert ends(pid)


@pytest.mark.parametrize("told", [signal.SIGKILL, signal.SIGINT])
def test_no_server_is_left_when_its_program_is_interrupted_in_a_call(place, told):
    text = """
for number in range(4):
    ask = lambda: server.embed([f"{number} word " * 3000] * 400)
    threading.Thread(target=ask, daemon=True).start()
server.embed(["word " * 3000] * 400)
"""
    child, pid = started(text, place, stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    child.send_signal(told)
    child.wait()
    assert ends(pid)


def test_ctrl_c_reaches_the_program_and_not_its_server(place):
    text = """
try:
    os.killpg(0, signal.SIGINT)
    time.sleep(600)
except KeyboardInterrupt:
    print(len(server.search("tide", k=1)), flush=True)
"""
    child, pid = started(text, place, start_new_session=True)
    assert child.stdout.readline() == "1\n" and child.wait() == 0 and ends(pid)


def test_a_thread_that_started_a_server_may_end_before_it(place):
    text = """
others = []
def start(): others.append(cento.Server(given["collection"], model=given["model"]))
thread = threading.Thread(target=start); thread.start(); thread.join()
time.sleep(0.3)
print(len(others[0].search("tide", k=1)), flush=True)
"""
    child, _ = started(text, place)
    assert child.stdout.readline() == "1\n" and child.wait() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_process_asks_the_server_and_does_not_hold_it(place):
    text = """
child = os.fork()
if child == 0:
    print(len(server.search("tide", k=1)), flush=True)
    server.close()
    os._exit(0) if server._child.ended() is None else os._exit(1)
assert os.waitpid(child, 0)[1] == 0
print(len(server.search("tide", k=1)), flush=True)
child = os.fork()
if child == 0:
    time.sleep(600)  # outlives its parent
print(child, flush=True)
os._exit(0)
"""
    child, pid = started(text, place)
    assert [child.stdout.readline(), child.stdout.readline()] == ["1\n", "1\n"]
    orphan = child.stdout.readline()
    assert child.wait() == 0 and ends(pid)
    os.kill(int(orphan), signal.SIGKILL)


def test_processes_of_multiprocessing_share_a_server(place):
    text = """
import multiprocessing
def ask(word): return len(server.search(word, k=1))
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(sum(pool.map(ask, ["tide", "bread", "star"] * 4)), flush=True)
"""
    child, pid = started(text, place)
    assert child.stdout.readline() == "12\n" and child.wait() == 0 and ends(pid)


def test_two_servers_serve_one_folder(fresh):
    options = {"model": TINY, "writable": True}
    with cento.Server(fresh / "collection", **options) as one, cento.Server(fresh / "collection", **options) as two:
        assert one.url != two.url and one.search("tide").hits == two.search("tide").hits
        one.add([{"id": "geyser", "text": "Hot water rises."}])
        two.add([{"id": "lake", "text": "Cold water stays."}])
        for server in (one, two):
            assert {"geyser", "lake"} <= {found.id for found in server.documents().documents}


def test_a_server_that_is_busy_is_asked_again(place):
    options = {"model": TINY, "workers": 2, "queue": 1}
    with cento.Server(place / "collection", **options) as server:
        texts = ["tide and moon " * 2000] * 60

        def ask(client, failures):
            try:
                client.embed(texts)
            except cento.Busy as error:
                failures.append(error)

        for retries in (0, 40):
            client, failures = cento.Client(server.url, retries=retries), []
            threads = [threading.Thread(target=ask, args=(client, failures)) for _ in range(8)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            assert bool(failures) == (retries == 0)
            assert all(error.retry_after and error.status == 429 for error in failures)


def test_a_client_goes_on_when_its_server_was_started_anew(place):
    with cento.Server(place / "collection", model=TINY) as first:
        client = cento.Client(first.url)
        wanted = client.search("tide")
    with cento.Server(place / "collection", model=TINY, listen=first.url.removeprefix("http://")):
        assert client.search("tide") == wanted
    with pytest.raises(cento.ConnectionFailed):
        client.search("tide")
