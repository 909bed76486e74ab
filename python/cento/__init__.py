"""Cento: searches a corpus, and makes cited contexts of it inside a hard token budget.

    import cento

    cento.index("notes")
    with cento.Server() as server:
        context = server.context("what moves the sea", budget=500)
    print(context.text, context.citations)

`assemble` makes such a context of the passages that any other search engine found. `Client` and `AsyncClient` ask a
server that runs elsewhere. The adapters for frameworks are modules of their own: `cento.langchain`,
`cento.llama_index`, `cento.haystack`, `cento.dspy`, `cento.mteb`, `cento.trec`.
"""

from .client import AsyncClient, Client
from .command import Passage, assemble, binary, index, pull, run
from .errors import (
    ApiError,
    BinaryNotFound,
    Busy,
    CentoError,
    CommandError,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    JobFailed,
    NotAllowed,
    NotFound,
    RequestError,
    ServerError,
    StartError,
)
from .results import Assembled, Context, Ranking, Run, Source
from .server import Server

__all__ = [
    "ApiError",
    "Assembled",
    "AsyncClient",
    "BinaryNotFound",
    "Busy",
    "CentoError",
    "Client",
    "CommandError",
    "Conflict",
    "ConnectionFailed",
    "Context",
    "DeadlineExceeded",
    "JobFailed",
    "NotAllowed",
    "NotFound",
    "Passage",
    "Ranking",
    "RequestError",
    "Run",
    "Server",
    "ServerError",
    "Source",
    "StartError",
    "assemble",
    "binary",
    "index",
    "pull",
    "run",
]
