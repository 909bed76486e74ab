"""Everything that can go wrong, as exceptions: all are `CentoError`."""

from __future__ import annotations


class CentoError(Exception):
    """Something that was asked of Cento was not done."""


class BinaryNotFound(CentoError):
    """The program `cento` is neither in this environment nor on the PATH."""


class CommandError(CentoError):
    """A command of the program ended with an error.

    `exit_code` is 1 for nothing found, 2 for wrong usage, 3 for data or index, 4 for model or device, 5 for files that
    could not be read, 130 for interrupted.
    """

    def __init__(self, message: str, exit_code: int, code: str | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.code = code


class StartError(CommandError):
    """A server did not start; the message is what it said."""


class ConnectionFailed(CentoError):
    """The server cannot be reached, or the connection broke before the answer was whole."""


class ApiError(CentoError):
    """The server refused a request.

    `code` names the kind of error and does not change; `parameter` is the field that is wrong, if it is one; `hint` is
    the way out, where the message does not say it; `status` is that of HTTP.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        parameter: str | None = None,
        hint: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message + (f" ({hint})" if hint else ""))
        self.status = status
        self.code = code
        self.message = message
        self.parameter = parameter
        self.hint = hint
        self.retry_after = retry_after

    def __reduce__(self):
        return type(self), (self.status, self.code, self.message, self.parameter, self.hint, self.retry_after)


class RequestError(ApiError):
    """The request cannot be understood, or a value in it cannot be used (400, 408, 413)."""


class NotAllowed(ApiError):
    """The key, its scope, the host or the origin is not allowed, or the server changes nothing (401, 403)."""


class NotFound(ApiError):
    """There is no such collection, document, job or route (404)."""


class Conflict(ApiError):
    """A job is at work on the collection already (409)."""


class Busy(ApiError):
    """Too many requests wait; `retry_after` says in how many seconds to ask again (429)."""


class ServerError(ApiError):
    """The server failed; its log says why (500)."""


class DeadlineExceeded(ApiError):
    """The answer took longer than the server allows; the work was stopped (504)."""


class JobFailed(ApiError):
    """A job ended without its commit, because it failed or was cancelled; the collection is as it was."""


_OF_STATUS = {
    400: RequestError,
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    408: RequestError,
    409: Conflict,
    413: RequestError,
    429: Busy,
    500: ServerError,
    504: DeadlineExceeded,
}


def of_status(status: int) -> type[ApiError]:
    """The exception of a status."""
    return _OF_STATUS.get(status, ApiError)
