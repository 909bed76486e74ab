"""The asynchronous client: the same answers, many at once, and calls that end when their task does."""

import asyncio
import inspect
import time

import cento
import pytest
from conftest import TINY


def test_every_method_has_its_twin():
    def names(kind):
        return {name for name, value in vars(kind).items() if not name.startswith("_") and inspect.isfunction(value)}

    assert names(cento.Client) - names(cento.AsyncClient) == set()
    for name in names(cento.Client) - {"close"}:
        one, other = getattr(cento.Client, name), getattr(cento.AsyncClient, name)
        assert inspect.iscoroutinefunction(other), name
        assert inspect.signature(one) == inspect.signature(other) and one.__doc__ == other.__doc__


def test_answers_are_those_of_the_client(server):
    async def ask():
        async with cento.AsyncClient(server.url) as client:
            queries = ["tide", "bread", "star"] * 10
            rankings = await asyncio.gather(*(client.search(query, k=2) for query in queries))
            context = await client.context("what moves the sea", budget=60)
            return dict(zip(queries, rankings)), context

    rankings, context = asyncio.run(ask())
    assert all(ranking == server.search(query, k=2) for query, ranking in rankings.items())
    assert context == server.context("what moves the sea", budget=60)


def test_a_refusal_is_the_same_exception(server):
    async def ask():
        async with cento.AsyncClient(server.url) as client:
            await client.search("tide", k=0)

    with pytest.raises(cento.RequestError):
        asyncio.run(ask())


def test_a_task_that_is_cancelled_ends_the_work_of_the_server(place, tmp_path):
    async def ask(url, seconds):
        async with cento.AsyncClient(url, timeout=600) as client:
            try:
                await asyncio.wait_for(client.embed([f"{n} " + "tide and moon " * 80 for n in range(1_000)]), seconds)
            except TimeoutError:
                await client.search("tide")  # a thread is free for it

    def is_told(log, seconds):
        until = time.monotonic() + seconds
        while '"route":"/v1/embed","status":499' not in log.read_text():
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True

    log = tmp_path / "log"
    with open(log, "w") as file:
        options = {"model": TINY, "log": file, "deadline": 600, "workers": 2}
        with cento.Server(place / "collection", **options) as server:
            for tenths in range(3, 60, 3):  # a machine may not have sent the texts by then, or have embedded them
                asyncio.run(ask(server.url, tenths / 10))
                if is_told(log, 2):
                    return
    raise AssertionError(log.read_text())
