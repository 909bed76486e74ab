"""`Server`: a server of one's own, started from the program that this package brings."""

from __future__ import annotations

import collections
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import IO, Any

from . import command
from ._http import DEFAULT_RETRIES
from .client import Client
from .errors import ConnectionFailed, StartError

#: Seconds until a server that was asked to end is killed; it gives answers under way five, and jobs five more.
END_SECONDS = 15.0

#: Lines of its log that are kept to explain why it ended.
LINES_KEPT = 50


class Server(Client):
    """Starts `cento serve` on a free port of this machine, waits until it listens, and asks it.

        with Server("notes.cento") as cento:
            print(cento.context("what moves the sea").text)

    It ends with the `with`, with `close`, or with this process, however that ends: it lives as long as its stdin.
    Ctrl-C does not reach it. A forked process may ask it too, but does not hold it. Options are those of `cento
    serve`: `model="…"`, `deadline=120`, `writable=True`, `root=["notes"]`. What it logs goes to `log`, if that is a
    file.
    """

    def __init__(
        self,
        collection: str | os.PathLike[str] | None = None,
        *,
        binary: str | None = None,
        start_timeout: float = 60.0,
        timeout: float | None = None,
        retries: int = DEFAULT_RETRIES,
        log: IO[str] | None = None,
        **options: Any,
    ) -> None:
        if collection is not None:
            options["collection"] = os.fspath(collection)
        options = {"listen": "127.0.0.1:0", **options, "until_stdin_ends": True}
        arguments = ["serve", *command.flags(options)]
        self._child = _Child([binary or command.binary(), *arguments], log)
        url = self._child.address(start_timeout)
        # An answer comes within the deadline of the server, or its refusal does.
        seconds = timeout if timeout is not None else float(options.get("deadline") or 30) + 30
        super().__init__(url, timeout=seconds, retries=retries)

    @property
    def pid(self) -> int:
        """The id of the process of the server."""
        return self._child.process.pid

    def close(self) -> None:
        """Ends the server, and waits until it has."""
        super().close()
        self._child.end()

    def _get(self, path: str, query: Any = None) -> Any:
        with self._explained():
            return super()._get(path, query)

    def _asked(self, *args: Any, **kwargs: Any) -> bytes:
        with self._explained():
            return super()._asked(*args, **kwargs)

    def _explained(self) -> _Explained:
        return _Explained(self._child)


class _Explained:
    """Says of a connection that failed that the server has ended, if that is why."""

    def __init__(self, child: _Child) -> None:
        self._child = child

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        if isinstance(error, ConnectionFailed) and (ended := self._child.ended()):
            raise ConnectionFailed(f"{error}: {ended}") from error


class _Child:
    """The process of a server. This process holds its stdin, and nobody else does."""

    def __init__(self, arguments: Sequence[str], log: IO[str] | None) -> None:
        self.process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the program that started it
        )
        self._owner = os.getpid()
        self._lines: collections.deque[str] = collections.deque(maxlen=LINES_KEPT)
        self._told = threading.Event()
        self._address: str | None = None
        _CHILDREN.add(self)
        # The finalizer must not know `self`, which would never go.
        self._finalizer = weakref.finalize(self, _end, self.process, self._owner)
        reader = threading.Thread(
            target=_read,
            args=(self.process.stderr, self._lines, self._told, weakref.ref(self), log),
            name="cento-server-log",
            daemon=True,
        )
        reader.start()
        self._reader = reader

    def address(self, timeout: float) -> str:
        """The address that it says; that it ends or says nothing is a `StartError`."""
        try:
            in_time = self._told.wait(timeout)
        except BaseException:
            self.end()
            raise
        if self._address is not None:
            return self._address
        self.end()
        if not in_time:
            raise StartError(f"the server said nothing for {timeout} seconds", -1)
        raise StartError(*command.told("\n".join(self._lines), self.process.returncode))

    def ended(self) -> str | None:
        """The end of the process in words, if it has come."""
        if self._owner != os.getpid():
            return None
        try:
            code = self.process.wait(1)  # its connections break before its last thread is gone
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(1)
        last = "\n".join(list(self._lines)[-5:])
        return f"the server ended with exit code {code}" + (f":\n{last}" if last else "")

    def end(self) -> None:
        """Ends it, if this process started it, and reads its log to the end."""
        self._finalizer()
        if self._owner == os.getpid():
            self._reader.join(END_SECONDS)


def _read(
    stderr: IO[bytes],
    lines: collections.deque[str],
    told: threading.Event,
    child: weakref.ref[_Child],
    log: IO[str] | None,
) -> None:
    """Reads what the server says, so that it never waits for a reader; the first address is its own."""
    with stderr:
        for raw in stderr:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            if not told.is_set() and line.startswith("http://"):
                if (own := child()) is not None:
                    own._address = line.split(" ", 1)[0]
                del own
                told.set()
                continue
            lines.append(line)
            if log is not None:
                try:
                    print(line, file=log, flush=True)
                except ValueError:
                    log = None  # it was closed
    told.set()


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if owner != os.getpid():
        return
    assert process.stdin is not None
    try:
        process.stdin.close()
    except OSError:
        pass  # it is gone already
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


_CHILDREN: weakref.WeakSet[_Child] = weakref.WeakSet()


def _forked() -> None:
    """Lets go of what a forked process inherited: it must not hold the servers of the process that it came from."""
    for child in list(_CHILDREN):
        child._finalizer.detach()
        assert child.process.stdin is not None
        child.process.stdin.close()
        child.process.returncode = 0  # nobody waits for the child of another process
    _CHILDREN.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)
