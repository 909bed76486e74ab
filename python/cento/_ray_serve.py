"""Servers of a collection's parts, placed and restarted by Ray Serve, and a coordinator that answers for all of them.

Each replica of a shard is an actor with a child of `cento serve`; a book, an actor too, knows their addresses, and the
coordinator's actor writes them into the file that its child reads them from.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
from ray import serve as ray_serve

from . import command
from .client import Client
from .server import _Child

#: Seconds between two looks of Ray Serve at an actor, in which it also says again where its server is.
HEALTH_SECONDS = 1.0

#: Seconds after which a server that says nothing is left out of the book.
FORGET_SECONDS = 10.0

#: Seconds that a server may take to start: it may have a model to load.
START_SECONDS = 120.0

#: The name of the coordinator among the shards' numbers.
COORDINATOR = "coordinator"


class Served:
    """A collection that Ray Serve keeps servers of.

    `url` is the address of the coordinator now; it changes when that is replaced, unless it has a port of its own and
    is on the same machine again. `client()` asks it. `shards()` gives the addresses of the servers of each shard.
    `close()` ends them all; they outlive this process otherwise, as everything does that Ray Serve runs.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._book = ray.get_actor(_book_name(name), namespace=_NAMESPACE)
        self.api_key: str = ray.get(self._book.key.remote("clients"))

    @property
    def url(self) -> str:
        addresses = ray.get(self._book.addresses.remote(COORDINATOR))
        if not addresses:
            raise RuntimeError(f"{self.name} has no coordinator at the moment; Ray Serve starts another")
        return addresses[-1]

    def client(self, **options: Any) -> Client:
        return Client(self.url, api_key=self.api_key, **options)

    def shards(self) -> list[list[str]]:
        n = ray.get(self._book.n_shards.remote())
        return ray.get([self._book.addresses.remote(str(shard)) for shard in range(n)])

    def close(self) -> None:
        ray_serve.delete(self.name)
        ray.kill(self._book)


def serve(
    parts: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    replicas: int = 1,
    model: str | None = None,
    name: str = "cento",
    port: int = 0,
    num_cpus: float = 1,
    per_node: int | None = None,
    shard_options: dict[str, Any] | None = None,
    **options: Any,
) -> Served:
    """Serves a collection, or the parts of one, from a Ray cluster, and waits until it answers.

    Each part has `replicas` servers of `num_cpus` cores, on as many nodes as there are, at most `per_node` of a part on
    one; every node must see the folders. A server that ends is replaced. Another call with the same name changes their
    number. Options are those of `cento serve` for the coordinator, which loads the encoder, by `model` if that is not
    where it was; `shard_options` are for the servers of the parts. They listen on the addresses of their nodes and want
    keys, which are made here.
    """
    folders = [os.fspath(part) for part in ([parts] if isinstance(parts, (str, os.PathLike)) else parts)]
    if not folders or replicas < 1:
        raise ValueError(f"{len(folders)} parts with {replicas} replicas each: there must be one at least")
    folders = [os.path.abspath(folder) for folder in folders]
    book = _Book.options(
        name=_book_name(name), namespace=_NAMESPACE, lifetime="detached", get_if_exists=True, num_cpus=0, max_restarts=-1
    ).remote(secrets.token_hex(32), secrets.token_hex(32))
    ray.get(book.begin.remote(len(folders)))
    keys = {door: ray.get(book.key.remote(door)) for door in ("shards", "clients")}
    health = {"health_check_period_s": HEALTH_SECONDS, "health_check_timeout_s": 10, "graceful_shutdown_timeout_s": 5}
    spread = {"max_replicas_per_node": per_node} if per_node else {}

    def shard(number: int) -> Any:
        deployment = _Shard.options(
            name=f"shard-{number}", num_replicas=replicas, ray_actor_options={"num_cpus": num_cpus}, **health, **spread
        )
        own = {"collection": folders[number], **(shard_options or {})}
        return deployment.bind(name, str(number), keys["shards"], own)

    coordinator = _Coordinator.options(name=COORDINATOR, ray_actor_options={"num_cpus": num_cpus}, **health)
    own = {"model": model, "port": port, **options}
    ray_serve.start(proxy_location="Disabled")  # clients ask the coordinator itself
    ray_serve.run(
        coordinator.bind(name, keys, own, [shard(number) for number in range(len(folders))]),
        name=name,
        route_prefix=None,
    )
    return Served(name)


_NAMESPACE = "cento"


def _book_name(name: str) -> str:
    return f"cento-book-{name}"


@ray.remote
class _Book:
    """The addresses of the servers of each shard, and of the coordinator, as their actors say them.

    A book that was started anew is empty until they have said them again, within `HEALTH_SECONDS`; its keys are those
    that it was made with.
    """

    def __init__(self, shards: str, clients: str) -> None:
        self._keys = {"shards": shards, "clients": clients}
        self._known: dict[str, dict[str, tuple[str, float]]] = {}
        self._n_shards = 0
        self._changed = asyncio.Condition()

    async def key(self, door: str) -> str:
        return self._keys[door]

    async def begin(self, n_shards: int) -> None:
        self._n_shards = n_shards

    async def n_shards(self) -> int:
        return self._n_shards

    async def put(self, shard: str, actor: str, address: str) -> None:
        known = self._known.setdefault(shard, {})
        is_new = known.get(actor, ("", 0.0))[0] != address
        known[actor] = (address, time.monotonic())
        if is_new:
            async with self._changed:
                self._changed.notify_all()

    async def remove(self, shard: str, actor: str) -> None:
        if self._known.get(shard, {}).pop(actor, None):
            async with self._changed:
                self._changed.notify_all()

    async def addresses(self, shard: str) -> list[str]:
        since = time.monotonic() - FORGET_SECONDS
        return [address for address, seen in self._known.get(shard, {}).values() if seen >= since]

    async def lines(self, n_shards: int, seen: list[str]) -> list[str]:
        """A line of addresses for each shard, as soon as they are others than `seen`, or after a while."""
        until = time.monotonic() + HEALTH_SECONDS
        while True:
            lines = ["|".join(sorted(await self.addresses(str(shard)))) for shard in range(n_shards)]
            left = until - time.monotonic()
            if lines != seen or left <= 0:
                return lines
            async with self._changed:
                try:
                    await asyncio.wait_for(self._changed.wait(), left)
                except TimeoutError:
                    pass


class _Kept:
    """A server of one's own, which the book knows; the actor ends with it, and so Ray Serve starts another."""

    def __init__(self, name: str, place: str) -> None:
        self._book = ray.get_actor(_book_name(name), namespace=_NAMESPACE)
        self._place = place
        self._actor = secrets.token_hex(8)
        self._folder = tempfile.TemporaryDirectory(prefix="cento-ray-")
        self._is_closed = False

    def _keys(self, key: str) -> str:
        path = Path(self._folder.name) / "keys"
        path.touch(mode=0o600)
        path.write_text(f"read sha256:{hashlib.sha256(key.encode()).hexdigest()} ray\n", encoding="ascii")
        return str(path)

    def _start(self, options: dict[str, Any], key: str, port: int = 0) -> None:
        host = ray.util.get_node_ip_address()
        listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        options = {"listen": listen, "api_keys": self._keys(key), **options, "until_stdin_ends": True}
        self._child = _Child([command.binary(), "serve", *command.flags(options)], None)
        self._address = self._child.address(START_SECONDS)
        ray.get(self._book.put.remote(self._place, self._actor, self._address))
        threading.Thread(target=self._watch, name="cento-watch", daemon=True).start()

    def _watch(self) -> None:
        self._child.process.wait()
        if not self._is_closed:
            print(f"cento: {self._place}: {self._child.ended()}", flush=True)
            try:
                ray.get(self._book.remove.remote(self._place, self._actor), timeout=1)
            finally:
                os._exit(1)  # Ray Serve sees at once that this actor is gone, and starts another

    def check_health(self) -> None:
        self._book.put.remote(self._place, self._actor, self._address)

    def __call__(self) -> str:
        """The address of the server."""
        return self._address

    def __del__(self) -> None:
        self._is_closed = True
        if hasattr(self, "_child"):
            self._child.end()
        self._folder.cleanup()


@ray_serve.deployment
class _Shard(_Kept):
    def __init__(self, name: str, shard: str, key: str, options: dict[str, Any]) -> None:
        super().__init__(name, shard)
        self._start(options, key)


@ray_serve.deployment
class _Coordinator(_Kept):
    def __init__(self, name: str, keys: dict[str, str], options: dict[str, Any], shards: list[Any]) -> None:
        super().__init__(name, COORDINATOR)
        self._n_shards = len(shards)
        self._file = Path(self._folder.name) / "shards"
        self._lines: list[str] = []
        until = time.monotonic() + START_SECONDS
        while not self._look():
            if time.monotonic() > until:
                missing = [str(shard) for shard, line in enumerate(self._lines) if not line]
                raise TimeoutError(f"no server of shard {', '.join(missing)} within {START_SECONDS:.0f} s")
        os.environ["CENTO_SHARD_KEY"] = keys["shards"]
        options = dict(options)
        port = options.pop("port")
        self._start({"collection": name, **options, "shards_from": str(self._file)}, keys["clients"], port)
        threading.Thread(target=self._follow, name="cento-shards", daemon=True).start()

    def _look(self) -> bool:
        """Writes where the shards are, if that is known of all and has changed.

        A shard without any server keeps its last ones: what asks them is told so by name.
        """
        lines = ray.get(self._book.lines.remote(self._n_shards, self._lines))
        known = self._lines or [""] * self._n_shards
        self._lines = [line or before for line, before in zip(lines, known)]
        if not all(self._lines):
            return False
        text = "\n".join(self._lines) + "\n"
        if not self._file.exists() or self._file.read_text(encoding="utf-8") != text:
            written = self._file.with_suffix(".new")
            written.write_text(text, encoding="utf-8")
            os.replace(written, self._file)
        return True

    def _follow(self) -> None:
        while not self._is_closed:
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 the book may be starting anew
                print(f"cento: the book of shards: {error}", flush=True)
                time.sleep(HEALTH_SECONDS)
