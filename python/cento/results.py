"""Answers as they are handed out: those of `cento.types`, with what makes them easy to use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import types
from .spans import characters

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: The rankings of many questions: for each its documents and their scores.
Run = dict[str, dict[str, float]]


@dataclass(frozen=True, kw_only=True)
class Ranking(types.SearchResponse):
    """The best chunks for a query: a sequence of hits, best first."""

    def __iter__(self) -> Iterator[types.Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: int) -> types.Hit:
        return self.hits[index]

    def rows(self) -> list[dict[str, Any]]:
        """A flat dictionary for each hit; `start` and `end` are bytes of the document's text."""
        return [
            {
                "query": self.query,
                "rank": hit.rank,
                "id": hit.id,
                "document": hit.document,
                "title": hit.title,
                "path": " > ".join(hit.path),
                "start": hit.span[0],
                "end": hit.span[1],
                "score": hit.score,
                "likelihood": hit.likelihood,
                "text": hit.text,
            }
            for hit in self.hits
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """The hits as a frame of pandas, which must be installed."""
        import pandas

        return pandas.DataFrame(self.rows(), columns=COLUMNS)

    def to_polars(self) -> polars.DataFrame:
        """The hits as a frame of Polars, which must be installed."""
        import polars

        kinds = {str: polars.String, int: polars.Int64, float: polars.Float64}
        return polars.DataFrame(self.rows(), schema={name: kinds[kind] for name, kind in COLUMNS.items()})

    def to_arrow(self) -> pyarrow.Table:
        """The hits as a table of Arrow; pyarrow must be installed."""
        import pyarrow

        kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
        schema = pyarrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
        return pyarrow.Table.from_pylist(self.rows(), schema=schema)


#: The columns of `Ranking.rows` and the types of their values.
COLUMNS: dict[str, type] = {
    "query": str,
    "rank": int,
    "id": str,
    "document": str,
    "title": str,
    "path": str,
    "start": int,
    "end": int,
    "score": float,
    "likelihood": float,
    "text": str,
}


@dataclass(frozen=True, kw_only=True)
class Context(types.ContextAnswer):
    """A cited context. `citations` have `span` in bytes and `characters` as Python counts them."""

    @property
    def text(self) -> str:
        """The text that the budget counts, ready for a model."""
        return self.context

    def __str__(self) -> str:
        return self.context


@dataclass(frozen=True)
class Source:
    """A part of a given passage that stands in a context: `passages[passage][start:end]`."""

    n: int
    """The number in its mark, from 1."""

    document: str
    """Id of the document."""

    passage: int
    """The number of the passage in the list that was given, from 0."""

    start: int
    """Its first character in the passage."""

    end: int
    """The end of its characters in the passage."""

    text: str
    """The part itself."""


@dataclass(frozen=True, kw_only=True)
class Assembled(types.AssembleAnswer):
    """A cited context of given passages."""

    candidates: Sequence[types.GivenCandidate] = field(default=(), repr=False)
    """The passages as they were sent."""

    @property
    def text(self) -> str:
        """The text that the budget counts, ready for a model."""
        return self.context

    def __str__(self) -> str:
        return self.context

    @property
    def sources(self) -> list[Source]:
        """The parts of the given passages that the context is made of, in its order, in characters."""
        found = []
        for citation in self.citations:
            for part in citation.passages:
                whole = self.candidates[part.candidate]["text"]
                [(start, end)] = characters(whole, [(part.span.start, part.span.end)])
                found.append(Source(citation.n, citation.document, part.candidate, start, end, whole[start:end]))
        return found
