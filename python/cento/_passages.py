"""What the adapters share: passages of other frameworks as candidates, and their contexts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from . import command
from .client import Client
from .results import Assembled
from .types import GivenCandidate

#: What an adapter that assembles hands on: one piece with the whole context, which keeps the budget to the token; or
#: the parts of the passages that it is made of, each as a piece of its own.
Deliver = Literal["context", "passages"]


def candidate(
    text: str,
    document: str,
    *,
    score: float | None = None,
    title: str | None = None,
    start: int | None = None,
    headings: Sequence[str] = (),
) -> GivenCandidate:
    """A passage; `start` is the character of its document that it begins with."""
    made: GivenCandidate = {"text": text, "document": document}
    if score is not None:
        made["score"] = float(score)
    if title:
        made["title"] = title
    if headings:
        made["headings"] = list(headings)
    if start is not None:
        made["characters"] = {"start": start, "end": start + len(text)}
    return made


def ranked(passages: Iterable[GivenCandidate]) -> list[GivenCandidate]:
    """The passages, with scores by their order unless every one has a score: the retriever gave them best first."""
    passages = list(passages)
    if all("score" in passage for passage in passages):
        return passages
    return [{**passage, "score": float(len(passages) - at)} for at, passage in enumerate(passages)]


def assembled(query: str, passages: Sequence[GivenCandidate], client: Client | None, options: Any) -> Assembled:
    """The context of passages, by a server, or by the program itself if there is none."""
    if client is None:
        return command.assemble(query, passages, **options)
    return client.assemble(query, passages, **options)


def facts(made: Assembled) -> dict[str, Any]:
    """What a context says of itself, as metadata that every framework can write down."""
    certificate = made.certificate
    return {
        "n_tokens": made.n_tokens,
        "budget_tokens": made.budget_tokens,
        "tokenizer": made.tokenizer,
        "outcome": made.outcome,
        "certificate": None if certificate is None else {"value": certificate.value, "bound": certificate.bound},
        "citations": [
            {
                "n": source.n,
                "document": source.document,
                "passage": source.passage,
                "start": source.start,
                "end": source.end,
            }
            for source in made.sources
        ],
    }


def is_blank(text: str | None) -> bool:
    """There is nothing in a text that could be delivered."""
    return text is None or not text.strip()
