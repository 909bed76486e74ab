"""Haystack: a retriever, and an assembler that keeps a hard budget, as components."""

from __future__ import annotations

from typing import Any, Literal

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import Secret, deserialize_secrets_inplace

from ._passages import assembled, candidate, facts, is_blank, ranked
from .client import Client
from .types import GivenCandidate


@component
class CentoRetriever:
    """The best chunks for a question.

    `options` are those of `Client.search`. Filters are Haystack's, or a filter of Cento as a string.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8181",
        *,
        api_key: Secret | None = None,
        collection: str | None = None,
        filters: dict[str, Any] | str | None = None,
        top_k: int = 10,
        options: dict[str, Any] | None = None,
    ) -> None:
        if top_k <= 0:
            raise ValueError(f"top_k must be greater than 0, but got {top_k}")
        self.url = url
        self.api_key = api_key
        self.collection = collection
        self.filters = filters
        self.top_k = top_k
        self.options = options or {}
        self._client = Client(url, api_key=api_key.resolve_value() if api_key else None)

    def to_dict(self) -> dict[str, Any]:
        """The component as a dictionary, its key as the secret that it is."""
        return default_to_dict(
            self,
            url=self.url,
            api_key=self.api_key.to_dict() if self.api_key else None,
            collection=self.collection,
            filters=self.filters,
            top_k=self.top_k,
            options=self.options,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CentoRetriever:
        """The component that a dictionary describes."""
        deserialize_secrets_inplace(data["init_parameters"], keys=["api_key"])
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | str | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """The chunks, best first, with `start` and `end` in characters of their documents in their metadata."""
        options = {**self.options, "k": self.top_k if top_k is None else top_k}
        wanted = self.filters if filters is None else filters
        if wanted:
            options["filter"] = wanted if isinstance(wanted, str) else expression(wanted)
        hits = self._client.search(query, collection=self.collection, **options)
        spans = self._client.characters(hits, collection=self.collection)
        documents = [
            Document(
                id=hit.id,
                content=hit.text,
                score=hit.score,
                meta={
                    "document": hit.document,
                    "title": hit.title,
                    "headings": hit.path,
                    "rank": hit.rank,
                    "likelihood": hit.likelihood,
                    "start": start,
                    "end": end,
                },
            )
            for hit, (start, end) in zip(hits, spans)
        ]
        return {"documents": documents}


@component
class CentoAssembler:
    """Makes a cited context of the documents of any retriever, inside a hard budget of tokens.

    Outputs: `context`, the text with its marks; `documents`, the parts of the documents that it is made of; `facts`,
    its tokens, citations and certificate. Without a `url` the program itself assembles. `options` are those of
    `cento.assemble`. Documents are the same where `meta[document_key]` is, or their ids.
    """

    def __init__(
        self,
        budget: int | str = 2_000,
        *,
        url: str | None = None,
        api_key: Secret | None = None,
        document_key: str = "document",
        options: dict[str, Any] | None = None,
    ) -> None:
        self.budget = budget
        self.url = url
        self.api_key = api_key
        self.document_key = document_key
        self.options = options or {}
        self._client = Client(url, api_key=api_key.resolve_value() if api_key else None) if url else None

    def to_dict(self) -> dict[str, Any]:
        """The component as a dictionary, its key as the secret that it is."""
        return default_to_dict(
            self,
            budget=self.budget,
            url=self.url,
            api_key=self.api_key.to_dict() if self.api_key else None,
            document_key=self.document_key,
            options=self.options,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CentoAssembler:
        """The component that a dictionary describes."""
        deserialize_secrets_inplace(data["init_parameters"], keys=["api_key"])
        return default_from_dict(cls, data)

    @component.output_types(context=str, documents=list[Document], facts=dict[str, Any])
    def run(self, query: str, documents: list[Document], budget: int | None = None) -> dict[str, Any]:
        """The context; of no documents an empty one."""
        given = [document for document in documents if not is_blank(document.content)]
        if not given:
            return {"context": "", "documents": [], "facts": {"n_tokens": 0, "citations": []}}
        passages = ranked(self._candidate(document) for document in given)
        options = {**self.options, "budget": self.budget if budget is None else budget}
        made = assembled(query, passages, self._client, options)
        parts = []
        for source in made.sources:
            whole = given[source.passage]
            meta = {**whole.meta, "citation": source.n, "of": whole.id}
            parts.append(Document(content=source.text, score=whole.score, meta=meta))
        return {"context": made.text, "documents": parts, "facts": facts(made)}

    def _candidate(self, document: Document) -> GivenCandidate:
        meta = document.meta
        start, end, text = meta.get("start"), meta.get("end"), document.content or ""
        is_placed = isinstance(start, int) and isinstance(end, int) and end - start == len(text)
        return candidate(
            text,
            str(meta.get(self.document_key) or document.id),
            score=document.score,
            title=meta["title"] if isinstance(meta.get("title"), str) else None,
            start=start if is_placed else None,
            headings=[str(heading) for heading in meta.get("headings") or ()],
        )


_COMPARISONS: dict[str, str] = {"==": "=", "!=": "!=", ">": ">", ">=": ">=", "<": "<", "<=": "<="}
_LISTS: dict[str, str] = {"in": "in", "not in": "not in"}
_JOINS: dict[str, Literal["and", "or"]] = {"AND": "and", "OR": "or", "NOT": "and"}


def expression(filters: dict[str, Any]) -> str:
    """A filter of Haystack as one of Cento; `meta.` before a field is left out."""
    operator = filters.get("operator")
    if operator in _JOINS:
        conditions = filters.get("conditions")
        if not conditions:
            raise ValueError(f"a filter {operator} needs conditions")
        joined = f" {_JOINS[operator]} ".join(expression(condition) for condition in conditions)
        return f"not ({joined})" if operator == "NOT" else f"({joined})"
    if "field" not in filters or "value" not in filters:
        raise ValueError(f"{filters}: expected field, operator and value")
    name = "`" + filters["field"].removeprefix("meta.").replace("`", "") + "`"
    value = filters["value"]
    if value is None and operator in ("==", "!="):
        return f"{name} is missing" if operator == "==" else f"{name} exists"
    if operator in _COMPARISONS:
        return f"{name} {_COMPARISONS[operator]} {_literal(value)}"
    if operator in _LISTS:
        return f"{name} {_LISTS[operator]} ({', '.join(map(_literal, value))})"
    known = ", ".join([*_COMPARISONS, *_LISTS, *_JOINS])
    raise ValueError(f"{operator!r} is no operator of filters; there are {known}")


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
        return '"' + "".join(escapes.get(letter, letter) for letter in value) + '"'
    isoformat = getattr(value, "isoformat", None)
    if isoformat is None:
        raise ValueError(f"{value!r} is no value of a filter")
    return isoformat()
