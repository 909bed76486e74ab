"""Clients of a server: `Client`, and `AsyncClient` with the same methods as coroutines."""

from __future__ import annotations

import array
import asyncio
import contextvars
import functools
import itertools
import json
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack
from urllib.parse import quote, unquote

from . import types
from ._decode import decode
from ._http import CALL, DEFAULT_RETRIES, DEFAULT_TIMEOUT, JSON, Call, Transport, refusal
from .command import Passage, assembled, candidates
from .errors import CentoError, JobFailed
from .results import Assembled, Context, Ranking, Run
from .spans import characters

if TYPE_CHECKING:
    import numpy

P = ParamSpec("P")
T = TypeVar("T")

OCTETS = "application/octet-stream"

#: Texts and queries that are sent at once; more are sent in several requests.
TEXTS_AT_ONCE = 512
QUERIES_AT_ONCE = 1_000

#: Documents that a run has for each question, and candidates of each retriever, unless told otherwise.
RUN_DOCUMENTS = 1_000

#: Seconds between two looks at a job, at first and at most.
POLL_SECONDS = (0.02, 1.0)


class Client:
    """Asks a server. Threads may share a client; so may a process that was forked.

    `collection` names the collection that is asked where a request names none; a server of one collection needs none.
    `timeout` is in seconds, of each request. A server that is busy is asked again `retries` times.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8181",
        *,
        api_key: str | None = None,
        collection: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        retries: int = DEFAULT_RETRIES,
    ) -> None:
        self._transport = Transport(url, api_key, timeout, retries)
        self.collection = collection

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._transport.url

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Questions

    def search(
        self, query: str = "", *, collection: str | None = None, **options: Unpack[types.SearchOptions]
    ) -> Ranking:
        """The best chunks for a query, or for a `vector` in its place or beside it."""
        return decode(Ranking, self._post("/v1/search", {"query": query, **options}, collection))

    def search_many(
        self,
        queries: Mapping[str, str] | Iterable[tuple[str, str]],
        *,
        collection: str | None = None,
        **options: Unpack[types.SearchOptions],
    ) -> dict[str, Ranking]:
        """The best chunks for each of many queries, by the ids of the queries."""
        found: dict[str, Ranking] = {}
        for body in _batches(queries, options):
            lines = self._asked("/v1/search/batch", body, collection, accept="application/x-ndjson").splitlines()
            for line in map(json.loads, lines):
                _ended_early(line)
                found[line["id"]] = decode(Ranking, line["answer"])
        return found

    def run(
        self,
        queries: Mapping[str, str] | Iterable[tuple[str, str]],
        *,
        collection: str | None = None,
        **options: Unpack[types.SearchOptions],
    ) -> Run:
        """Documents and their scores for each of many queries, as evaluation tools read them: `k=1000` of them."""
        options.setdefault("k", RUN_DOCUMENTS)
        options.setdefault("candidates", max(options["k"], RUN_DOCUMENTS))
        found: Run = {}
        for body in _batches(queries, options):
            found |= {query["id"]: {} for query in body["queries"]}
            for line in self._asked("/v1/search/batch", body, collection, accept="text/plain").splitlines():
                if line.startswith(b'{"error"'):
                    _ended_early(json.loads(line))
                query, _, document, _, score, _ = line.decode().split(" ")
                found[unquote(query)][unquote(document)] = float(score)  # blanks in ids are written as %20
        return found

    def context(self, query: str, *, collection: str | None = None, **options: Unpack[types.ContextOptions]) -> Context:
        """The cited context that answers a question, inside a hard budget: `budget=2000` tokens."""
        return decode(Context, self._post("/v1/context", {"query": query, **options}, collection))

    def assemble(self, query: str, passages: Iterable[Passage], **options: Unpack[types.AssembleOptions]) -> Assembled:
        """The cited context that passages of any search engine make; see `cento.assemble`."""
        given = candidates(passages)
        answer = self._post("/v1/assemble", {"query": query, "candidates": given, **options})
        return assembled(answer, given)

    def embed(
        self, texts: Sequence[str], *, kind: types.TextKind = "document", collection: str | None = None
    ) -> list[list[float]]:
        """A vector of unit length for each text, by the encoder of a collection."""
        return [vector.tolist() for vector in self._vectors(texts, kind, collection)]

    def embed_array(
        self, texts: Sequence[str], *, kind: types.TextKind = "document", collection: str | None = None
    ) -> numpy.ndarray:
        """The same as a matrix of 32-bit floats, `[texts, dimensions]`; NumPy must be installed."""
        import numpy

        rows = [numpy.frombuffer(vector, dtype=numpy.float32) for vector in self._vectors(texts, kind, collection)]
        return numpy.stack(rows) if rows else numpy.empty((0, 0), dtype=numpy.float32)

    def neighbors(
        self,
        vectors: Sequence[Sequence[float]] | numpy.ndarray,
        *,
        collection: str | None = None,
        **options: Unpack[types.NeighborsOptions],
    ) -> types.NeighborsAnswer:
        """The nearest neighbours of each vector. A matrix of NumPy is sent as its bytes."""
        if hasattr(vectors, "astype") and "within" not in options:
            raw = vectors.astype("<f4", copy=False).tobytes()
            query = {"collection": collection or self.collection, **options}
            answer = json.loads(self._transport.send("POST", "/v1/neighbors", query, raw, OCTETS))
        else:
            rows = [[float(value) for value in vector] for vector in vectors]
            answer = self._post("/v1/neighbors", {"vectors": rows, **options}, collection)
        return decode(types.NeighborsAnswer, answer)

    # Explanations

    def why_not(
        self, id: str, query: str, *, collection: str | None = None, **options: Unpack[types.ContextOptions]
    ) -> types.WhyNot:
        """The stage that lost a document between a question and its context."""
        body = {"id": id, "context": {"query": query, **options}}
        return decode(types.WhyNot, self._post("/v1/explain", body, collection))

    def trace(
        self, query: str, *, collection: str | None = None, **options: Unpack[types.ContextOptions]
    ) -> dict[str, Any]:
        """The trace of a context: every candidate, and what became of it."""
        return self._post("/v1/explain/trace", {"query": query, **options}, collection)

    def assemble_trace(
        self, query: str, passages: Iterable[Passage], **options: Unpack[types.AssembleOptions]
    ) -> dict[str, Any]:
        """The trace of a context of given passages."""
        return self._post("/v1/assemble/trace", {"query": query, "candidates": candidates(passages), **options})

    # Collections

    def collections(self) -> list[str]:
        """The names of the collections."""
        return decode(types.CollectionList, self._get("/v1/collections")).collections

    def status(self, *, collection: str | None = None) -> types.Status:
        """The contents of a collection."""
        return decode(types.Status, self._get(self._of(collection)))

    def documents(self, filter: str | None = None, *, collection: str | None = None) -> types.DocumentList:
        """The documents, all or those that a filter admits."""
        return decode(types.DocumentList, self._get(self._of(collection, "/documents"), {"filter": filter}))

    def text(self, citation: str, *, collection: str | None = None) -> types.Excerpt:
        """A document, or the part that a citation names: `id`, `id#3` or `id:12-20`."""
        return decode(types.Excerpt, self._get(self._of(collection, "/text"), {"citation": citation}))

    def sections(self, document: str, *, collection: str | None = None) -> types.SectionList:
        """The sections of a document."""
        return decode(types.SectionList, self._get(self._of(collection, "/sections"), {"document": document}))

    def fields(self, *, collection: str | None = None) -> types.FieldList:
        """The fields that filters can speak of."""
        return decode(types.FieldList, self._get(self._of(collection, "/fields")))

    def characters(self, hits: Iterable[types.Hit], *, collection: str | None = None) -> list[tuple[int, int]]:
        """The spans of hits in characters of their documents, as Python counts; each document is read once."""
        hits = list(hits)
        found: dict[str, tuple[int, int]] = {}
        for document in dict.fromkeys(hit.document for hit in hits):
            own = [hit for hit in hits if hit.document == document]
            excerpt = self.text(document, collection=collection)
            first = excerpt.span[0]
            spans = [(hit.span[0] - first, hit.span[1] - first) for hit in own]
            found |= {hit.id: span for hit, span in zip(own, characters(excerpt.text, spans))}
        return [found[hit.id] for hit in hits]

    # Changes, where the server lets its clients change something

    def add(
        self, documents: Iterable[types.NewDocument], *, collection: str | None = None, wait: float | None = None
    ) -> types.Written:
        """Adds documents, or changes those that are there; waits for the commit, `wait` seconds at most."""
        return self._written("/documents", {"documents": list(documents)}, collection, wait)

    def index(
        self,
        *paths: str,
        allow_empty: bool = False,
        collection: str | None = None,
        wait: float | None = None,
    ) -> types.Written:
        """Brings a collection up to date with files and folders of the server, by the labels of its roots."""
        return self._written("/index", {"paths": list(paths), "allow_empty": allow_empty}, collection, wait)

    def delete(
        self,
        ids: Sequence[str] = (),
        *,
        filter: str | None = None,
        collection: str | None = None,
        wait: float | None = None,
    ) -> types.Written:
        """Deletes documents by their ids, or those that a filter admits."""
        return self._written("/delete", {"ids": list(ids), "filter": filter}, collection, wait)

    def compact(self, *, all: bool = False, collection: str | None = None, wait: float | None = None) -> types.Written:
        """Merges segments, and leaves behind what was deleted."""
        return self._written("/compact", {"all": all}, collection, wait)

    def jobs(self) -> list[types.JobAnswer]:
        """The jobs that change collections, those begun last first."""
        return decode(types.JobList, self._get("/v1/jobs")).jobs

    def cache(self) -> types.CacheStatus:
        """What the embedding cache of the server's user holds."""
        return decode(types.CacheStatus, self._get("/v1/cache"))

    def job(self, id: str) -> types.JobAnswer:
        """How far a job is."""
        return decode(types.JobAnswer, self._get(f"/v1/jobs/{quote(id, safe='')}"))

    def cancel(self, id: str) -> types.JobAnswer:
        """Asks a job to end; the collection stays as it was."""
        return decode(types.JobAnswer, json.loads(self._transport.send("DELETE", f"/v1/jobs/{quote(id, safe='')}")))

    def wait(self, id: str, timeout: float | None = None) -> types.Written:
        """Waits until a job is done. One that fails or is cancelled is a `JobFailed`, none in time a `TimeoutError`."""
        ends = None if timeout is None else time.monotonic() + timeout
        pause, longest = POLL_SECONDS
        while True:
            job = self.job(id)
            if job.state == "done":
                assert job.result is not None
                return job.result
            if job.state in ("failed", "cancelled"):
                error = job.error
                if error is None:
                    raise JobFailed(200, job.state, f"job {id} was {job.state}")
                raise JobFailed(200, error.code, error.message, error.parameter, error.hint)
            if ends is not None and time.monotonic() >= ends:
                raise TimeoutError(f"job {id} is at work after {timeout} seconds; it goes on")
            self._pause(pause)
            pause = min(2 * pause, longest)

    # Everything else

    def request(self, method: Literal["GET", "POST", "DELETE"], path: str, body: Any = None, **query: Any) -> Any:
        """The JSON that a route answers: `GET /openapi.json` lists them."""
        raw = None if body is None else _json(body)
        return json.loads(self._transport.send(method, path, query, raw))

    def _get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        return json.loads(self._transport.send("GET", path, query))

    def _post(self, path: str, body: Mapping[str, Any], collection: str | None = None) -> Any:
        return json.loads(self._asked(path, body, collection))

    def _asked(self, path: str, body: Mapping[str, Any], collection: str | None, accept: str = JSON) -> bytes:
        name = None if path.startswith("/v1/assemble") else collection or self.collection
        return self._transport.send("POST", path, {"collection": name}, _json(body), accept=accept)

    def _of(self, collection: str | None, rest: str = "") -> str:
        """The path of something of a collection."""
        name = collection or self.collection
        if name is None:
            names = self.collections()
            if len(names) != 1:
                raise CentoError(f"which collection: {', '.join(names)}? give collection=")
            name = names[0]
        return f"/v1/collections/{quote(name, safe='')}{rest}"

    def _vectors(self, texts: Sequence[str], kind: str, collection: str | None) -> Iterable[array.array[float]]:
        if isinstance(texts, str):
            raise TypeError("expected a list of texts, not one text")
        for at in range(0, len(texts), TEXTS_AT_ONCE):
            block = list(texts[at : at + TEXTS_AT_ONCE])
            raw = array.array("f")
            raw.frombytes(self._asked("/v1/embed", {"texts": block, "kind": kind}, collection, accept=OCTETS))
            dimensions = len(raw) // len(block)
            if array.array("H", [1]).tobytes() == b"\x00\x01":
                raw.byteswap()  # they come little-endian
            yield from (raw[from_ : from_ + dimensions] for from_ in range(0, len(raw), dimensions))

    def _written(self, what: str, body: Mapping[str, Any], collection: str | None, wait: float | None) -> types.Written:
        """Begins a job and waits for it. It is never begun twice: a broken connection is an error."""
        path = self._of(collection, what)
        job = json.loads(self._transport.send("POST", path, body=_json(body), is_repeatable=False))
        return self.wait(job["id"], wait)

    def _pause(self, seconds: float) -> None:
        call = CALL.get()
        if call is None:
            time.sleep(seconds)
        elif call.ended.wait(seconds):
            raise CentoError("the call was ended")


def _json(body: Any) -> bytes:
    return json.dumps(body, allow_nan=False).encode()


def _batches(
    queries: Mapping[str, str] | Iterable[tuple[str, str]], options: Mapping[str, Any]
) -> Iterable[dict[str, Any]]:
    pairs = iter(queries.items() if isinstance(queries, Mapping) else queries)
    while block := list(itertools.islice(pairs, QUERIES_AT_ONCE)):
        yield {"queries": [{"id": str(id), "query": query} for id, query in block], "search": dict(options)}


def _ended_early(line: dict[str, Any]) -> None:
    """Raises the error that ended the lines of a batch."""
    if "error" in line:
        raise refusal(500, None, json.dumps(line).encode())


def _twin(method: Callable[Concatenate[Client, P], T]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    @functools.wraps(method)
    async def twin(self: AsyncClient, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._on_thread(functools.partial(method, self._client, *args, **kwargs))

    return twin


class AsyncClient:
    """The methods of `Client` as coroutines, on threads of its own: `concurrency` requests at once, more wait.

    A task that is cancelled closes its connection, and the server stops its work.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8181",
        *,
        api_key: str | None = None,
        collection: str | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        retries: int = DEFAULT_RETRIES,
        concurrency: int = 32,
    ) -> None:
        self._client = Client(url, api_key=api_key, collection=collection, timeout=timeout, retries=retries)
        self._concurrency = concurrency
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="cento")
        self._process = os.getpid()

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._client.url

    async def close(self) -> None:
        """Closes the connections."""
        self._client.close()
        self._threads.shutdown(wait=False)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _on_thread(self, work: Callable[[], T]) -> T:
        if self._process != os.getpid():  # threads are not forked
            self._threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="cento")
            self._process = os.getpid()
        call = Call()
        context = contextvars.copy_context()
        context.run(CALL.set, call)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, context.run, work)
        except asyncio.CancelledError:
            call.end()
            raise

    search = _twin(Client.search)
    search_many = _twin(Client.search_many)
    run = _twin(Client.run)
    context = _twin(Client.context)
    assemble = _twin(Client.assemble)
    embed = _twin(Client.embed)
    embed_array = _twin(Client.embed_array)
    neighbors = _twin(Client.neighbors)
    why_not = _twin(Client.why_not)
    trace = _twin(Client.trace)
    assemble_trace = _twin(Client.assemble_trace)
    collections = _twin(Client.collections)
    status = _twin(Client.status)
    documents = _twin(Client.documents)
    text = _twin(Client.text)
    sections = _twin(Client.sections)
    fields = _twin(Client.fields)
    characters = _twin(Client.characters)
    add = _twin(Client.add)
    index = _twin(Client.index)
    delete = _twin(Client.delete)
    compact = _twin(Client.compact)
    jobs = _twin(Client.jobs)
    job = _twin(Client.job)
    cancel = _twin(Client.cancel)
    wait = _twin(Client.wait)
    request = _twin(Client.request)
