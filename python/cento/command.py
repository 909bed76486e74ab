"""The program `cento` that this package brings: where it is, and its commands as functions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from ._decode import decode
from .errors import BinaryNotFound, CommandError
from .results import Assembled
from .types import AssembleOptions, GivenCandidate

#: A passage that another engine found: its text, its text and score, or all that is known of it.
Passage = str | tuple[str, float] | GivenCandidate

NAME = "cento.exe" if os.name == "nt" else "cento"


def binary() -> str:
    """The path of the program: beside this package, in this environment, else on the PATH."""
    schemes = [None, sysconfig.get_preferred_scheme("user")]
    folders = [sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts") for scheme in schemes]
    package = Path(__file__).resolve().parent
    folders += [str(package.parent / "bin"), str(Path(sys.executable).parent)]  # of `pip install --target`
    for folder in folders:
        path = os.path.join(folder, NAME)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which(NAME)
    if found is None:
        where = f"in {', '.join(folders)} or on the PATH"
        raise BinaryNotFound(f"there is no {NAME} {where}; install the wheel of Cento again, it brings it")
    return found


def flags(options: Mapping[str, Any]) -> list[str]:
    """Options as the command line has them: `chunk_tokens=128` is `--chunk-tokens 128`, a list is repeated."""
    written: list[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            written.append(flag)
        elif isinstance(value, (list, tuple)):
            written += [f"{flag}={item}" for item in value]
        elif value is not None and value is not False:
            written.append(f"{flag}={value}")
    return written


def run(
    *arguments: str | os.PathLike[str],
    input: bytes | None = None,
    binary: str | None = None,
    done: Sequence[int] = (0,),
) -> bytes:
    """Runs a command of the program, and gives what it prints. An exit code that is not `done` is a `CommandError`.

    If this is interrupted, the command is killed; what indexing had embedded until then is kept in the cache.
    """
    command = [binary or _own_binary(), *(os.fspath(argument) for argument in arguments)]
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **given)
    if ended.returncode not in done:
        raise CommandError(*told(ended.stderr.decode("utf-8", "replace"), ended.returncode))
    return ended.stdout


def told(stderr: str, exit_code: int) -> tuple[str, int]:
    """The message of an error among what a command said, and its exit code."""
    at = stderr.find("error: ")
    message = stderr[at + len("error: ") :] if at >= 0 else stderr
    return message.strip() or f"cento ended with exit code {exit_code}", exit_code


def index(
    *paths: str | os.PathLike[str],
    collection: str | os.PathLike[str] = ".cento",
    binary: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Indexes files and folders, or brings a collection up to date with them; the answer says what was done.

    Files that could not be read are in its `failed` and `unread`; their documents stay as they were.
    Options are those of `cento index`: `chunk_tokens=256`, `model="…"`, `vectors="f16"`.
    """
    given = [f"--collection={os.fspath(collection)}", *flags(options), "--json", "--quiet", "--"]
    return json.loads(run("index", *given, *paths, binary=binary, done=(0, 5)))


def pull(model: str | None = None, binary: str | None = None) -> None:
    """Downloads an encoder, once: the default one, or one of the hub, by its name there."""
    run("model", "pull", *([model] if model else []), "--quiet", binary=binary)


def assemble(
    query: str,
    passages: Iterable[Passage],
    *,
    binary: str | None = None,
    **options: Unpack[AssembleOptions],
) -> Assembled:
    """The cited context that passages of any search engine make, inside a hard budget: `budget=2000` tokens.

    A passage is a text, a `(text, score)`, or a dictionary with `text`, `document` and what else is known (`score`,
    `title`, `headings`, `vector`, its place as `span` in bytes or `characters`). Texts without any score are taken to
    be ranked, the best first. A larger score is better. Where nothing is relevant, or nothing fits, the context is a
    line that says so (`outcome`). Needs no server, no collection and no encoder.
    """
    given = candidates(passages)
    body = json.dumps({"query": query, "candidates": given, **options}, allow_nan=False).encode()
    answer = json.loads(run("assemble", "-", "--json", "--quiet", input=body, binary=binary, done=(0, 1)))
    return assembled(answer, given)


def assembled(answer: dict[str, Any], given: Sequence[GivenCandidate]) -> Assembled:
    """An answer with the passages that it is about."""
    made = decode(Assembled, answer)
    object.__setattr__(made, "candidates", given)
    return made


def candidates(passages: Iterable[Passage]) -> list[GivenCandidate]:
    """Passages as they are sent; the document of a mere text is its number in the list, from 1."""
    given: list[GivenCandidate] = []
    for number, passage in enumerate(passages, 1):
        if isinstance(passage, str):
            given.append({"document": str(number), "text": passage})
        elif isinstance(passage, Mapping):
            given.append(passage)
        else:
            text, score = passage
            given.append({"document": str(number), "text": text, "score": float(score)})
    if not any("score" in passage for passage in given):
        given = [{**passage, "score": float(len(given) - at)} for at, passage in enumerate(given)]
    return given


_own_binary = binary  # arguments of this name hide it
