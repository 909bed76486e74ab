"""Vectors for tables of Arrow, made by one child of `cento embed --arrow`; needs `cento[arrow]`."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from .command import binary as own_binary
from .command import flags, told
from .errors import CommandError

#: Columns that are added.
ADDED = ("vector", "n_tokens", "truncated")
#: Rows of a batch that is sent; what the program embeds at a time.
BATCH_ROWS = 1024


class ArrowEmbedder:
    """An encoder in a child, loaded once. `embedder(table)` gives the table with its vectors.

    Texts are in `column`; with `title`, that column and a blank stand before them. Options are those of `cento embed`:
    `model="…"`, `kind="query"`, `device="gpu"`, `output_type="f16"`, `threads=4`; with `use_cache=True` and `cache=DIR`
    what was embedded once is found there again. The schema's metadata say which encoder it was. A row whose text is
    null has no vector. Threads may share an embedder; each call waits for the one before it.
    """

    def __init__(self, *, column: str = "text", title: str | None = None, binary: str | None = None, **options: Any):
        self._columns = {"text": column} if title is None else {"title": title, "text": column}
        self._lock = threading.Lock()
        self._told = tempfile.TemporaryFile()
        command = [binary or own_binary(), "embed", "-", "--arrow", "--quiet", *flags(options)]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._told, start_new_session=True
        )
        sent = pa.schema([(name, pa.large_string()) for name in self._columns])
        try:
            self._writer = pa.ipc.new_stream(self._child.stdin, sent)
            self._send([pa.RecordBatch.from_pylist([], schema=sent)])
            self._reader = pa.ipc.open_stream(self._child.stdout)
        except (OSError, pa.ArrowInvalid) as error:
            raise self._failed() from error
        self.vector_type: pa.DataType = self._reader.schema.field("vector").type
        self.metadata: dict[bytes, bytes] = dict(self._reader.schema.metadata or {})

    def __call__(self, table: pa.Table) -> pa.Table:
        for name in ADDED:
            if name in table.column_names:
                raise ValueError(f"the table has a column {name!r}, which would be added; rename or drop it")
        sent = pa.table({name: _texts(table, column) for name, column in self._columns.items()})
        with self._lock:
            made = self._answers(sent)
        for name in ADDED:
            table = table.append_column(self._reader.schema.field(name), made.column(name))
        return table.replace_schema_metadata({**(table.schema.metadata or {}), **self.metadata})

    def _answers(self, sent: pa.Table) -> pa.Table:
        batches = sent.to_batches(max_chunksize=BATCH_ROWS)
        # The child writes while it is written to: one thread for both would wait for itself.
        writer = threading.Thread(target=self._send, args=(batches,), daemon=True)
        writer.start()
        made, n_rows = [], 0
        try:
            while n_rows < sent.num_rows:
                made.append(self._reader.read_next_batch())
                n_rows += made[-1].num_rows
        except (OSError, StopIteration, pa.ArrowInvalid) as error:
            raise self._failed() from error
        finally:
            writer.join()
        return pa.Table.from_batches(made, self._reader.schema)

    def _send(self, batches: Iterable[pa.RecordBatch]) -> None:
        with contextlib.suppress(
            OSError, ValueError
        ):  # the child has ended, or its pipe is closed: its answer is missed
            for batch in batches:
                self._writer.write_batch(batch)
            self._child.stdin.flush()

    def _failed(self) -> CommandError:
        self.close()
        self._told.seek(0)
        return CommandError(*told(self._told.read().decode("utf-8", "replace"), self._child.returncode))

    def close(self) -> None:
        """Ends the child. A second time does nothing."""
        if self._child.stdin.closed:
            return
        with contextlib.suppress(OSError, AttributeError):
            self._writer.close()
        for pipe in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            self._child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def __enter__(self) -> ArrowEmbedder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def embed(tables: Iterable[pa.Table | pa.RecordBatch], **options: Any) -> Iterator[pa.Table]:
    """Tables, or the batches of a reader, with their vectors, one after another; options of `ArrowEmbedder`."""
    with ArrowEmbedder(**options) as embedder:
        for table in tables:
            yield embedder(table if isinstance(table, pa.Table) else pa.Table.from_batches([table]))


def _texts(table: pa.Table, column: str) -> pa.ChunkedArray:
    if column not in table.column_names:
        raise KeyError(f"the table has no column {column!r}; it has {', '.join(table.column_names) or 'none'}")
    found = table.column(column)
    kind = found.type.value_type if pa.types.is_dictionary(found.type) else found.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise TypeError(f"column {column!r} holds {found.type}, not strings")
    return found.cast(pa.large_string())
