"""Requests over HTTP with the standard library: kept connections, errors as exceptions, calls that can be ended."""

from __future__ import annotations

import contextvars
import http.client
import json
import os
import socket
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from .errors import ApiError, ConnectionFailed, of_status

#: Seconds that an answer may take: more than the 30 that a server takes unless it is told otherwise.
DEFAULT_TIMEOUT = 60.0

#: Times that a request is sent again to a server that is busy, each after the seconds that it names.
DEFAULT_RETRIES = 4

JSON = "application/json"


class Call:
    """A request under way, which another thread may end."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.connection: http.client.HTTPConnection | None = None

    def end(self) -> None:
        """Closes the connection: the server stops its work, and the thread that waits gets an error."""
        self.ended.set()
        connection = self.connection
        if connection is not None and connection.sock is not None:
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended by itself


#: The call that the requests of this context belong to, if somebody may end it.
CALL: contextvars.ContextVar[Call | None] = contextvars.ContextVar("cento_call", default=None)


class Transport:
    """The way to one server. Threads may share it; a forked process begins with connections of its own."""

    def __init__(self, url: str, api_key: str | None, timeout: float, retries: int) -> None:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url}: expected an address as http://127.0.0.1:8181")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self.timeout = timeout
        self.retries = retries
        self._parts = parts
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    def close(self) -> None:
        """Closes the connections that are not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        kind: str = JSON,
        accept: str = JSON,
        is_repeatable: bool = True,
    ) -> bytes:
        """The body of the answer; a refusal is an `ApiError`. A busy server is asked again, `retries` times."""
        target = self._parts.path.rstrip("/") + quote(path, safe="/%")
        given = {key: value for key, value in (query or {}).items() if value is not None}
        target += f"?{urlencode(given)}" if given else ""
        headers = {**self._headers, "Accept": accept}
        if body is not None:
            headers["Content-Type"] = kind
        call = CALL.get() or Call()
        for attempt in range(self.retries + 1):
            status, retry_after, answer = self._exchange(call, (method, target, body, headers), is_repeatable)
            if status < 400:
                return answer
            error = refusal(status, retry_after, answer)
            wait = error.retry_after if status == 429 else None
            if wait is None or attempt == self.retries or call.ended.wait(wait * (attempt + 1)):
                raise error
        raise AssertionError("the last attempt returns or raises")

    def _exchange(
        self, call: Call, request: tuple[str, str, bytes | None, dict[str, str]], is_repeatable: bool
    ) -> tuple[int, str | None, bytes]:
        """Status, Retry-After and body of the answer. A kept connection that turns out closed is replaced, once."""
        connection = self._kept() if is_repeatable else None
        if connection is not None:
            try:
                return self._over(call, connection, request)
            except (ConnectionError, http.client.BadStatusLine):
                pass  # the server closed it meanwhile
            except (OSError, http.client.HTTPException) as error:
                raise ConnectionFailed(f"{self.url}: {error or type(error).__name__}") from error
        https = self._parts.scheme == "https"
        made = http.client.HTTPSConnection if https else http.client.HTTPConnection
        assert self._parts.hostname is not None
        connection = made(self._parts.hostname, self._parts.port, timeout=self.timeout)
        try:
            return self._over(call, connection, request)
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailed(f"{self.url}: {error or type(error).__name__}") from error

    def _over(
        self,
        call: Call,
        connection: http.client.HTTPConnection,
        request: tuple[str, str, bytes | None, dict[str, str]],
    ) -> tuple[int, str | None, bytes]:
        method, target, body, headers = request
        call.connection = connection
        try:
            if connection.sock is None:
                connection.connect()
            if call.ended.is_set():
                raise ConnectionAbortedError("the call was ended")
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            answer = response.read()
        except BaseException:
            connection.close()
            raise
        finally:
            call.connection = None
        self._keep(connection)
        return response.status, response.getheader("Retry-After"), answer

    def _kept(self) -> http.client.HTTPConnection | None:
        if (
            self._process != os.getpid()
        ):  # connections are those of the process that forked, and a thread of it may lock
            self._lock, self._idle, self._process = threading.Lock(), [], os.getpid()
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        if connection.sock is None:
            return  # the server asked to close
        with self._lock:
            if self._process == os.getpid():
                self._idle.append(connection)


def refusal(status: int, retry_after: str | None, body: bytes) -> ApiError:
    """A refusal as an exception, whoever refused."""
    seconds = None
    if retry_after is not None:
        try:
            seconds = max(0.0, float(retry_after))
        except ValueError:
            pass  # a date: of a proxy
    try:
        error = json.loads(body)["error"]
        told = (error["code"], error["message"], error.get("parameter"), error.get("hint"))
    except (ValueError, LookupError, TypeError):
        text = body[:200].decode("utf-8", "replace").strip()
        told = ("http", f"HTTP {status}: {text}" if text else f"HTTP {status}", None, None)
    return of_status(status)(status, *told, retry_after=seconds)
