"""Cento for the runner of ann-benchmarks (github.com/erikbern/ann-benchmarks).

The vectors are indexed once; `cento serve` answers over HTTP on the loopback, one request for a query, or one for a batch
of them, so what is measured is what a client gets. The program is found on PATH, or where CENTO says.
"""

import atexit
import http.client
import json
import os
import shutil
import subprocess
import tempfile
import time

import numpy
import psutil

from ..base.module import BaseANN

DISTANCES = {"angular": "cosine", "euclidean": "euclidean", "dot": "inner-product", "ip": "inner-product"}
BATCH = 256  # queries of one request


class Cento(BaseANN):
    def __init__(self, metric, stored):
        if metric not in DISTANCES:
            raise NotImplementedError(f"Cento does not compute {metric}")
        self._distance = DISTANCES[metric]
        self._stored = stored  # f32, or f16 for half the memory
        self._ef = 64
        self._program = os.environ.get("CENTO", "cento")
        self._folder = tempfile.mkdtemp(prefix="cento-")
        self._server = None
        self._connection = None
        self._found = []
        self.name = f"Cento({stored})"
        atexit.register(self.done)

    def fit(self, X):
        vectors = os.path.join(self._folder, "vectors.npy")
        collection = os.path.join(self._folder, "collection")
        numpy.save(vectors, numpy.ascontiguousarray(X, dtype=numpy.float32))
        index = ["index", "--from-vectors", vectors, "--distance", self._distance, "--vectors", self._stored]
        if self._distance == "cosine":
            index.append("--normalize")
        subprocess.run([self._program, "--collection", collection, *index], check=True, stdout=subprocess.DEVNULL)
        os.remove(vectors)
        # A file, not a pipe that somebody would have to read: the server logs every request.
        log = os.path.join(self._folder, "log")
        with open(log, "w") as out:
            serve = [self._program, "--collection", collection, "serve", "--listen", "127.0.0.1:0"]
            self._server = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=out)
        self._connection = http.client.HTTPConnection(self._address(log))

    def _address(self, log):
        """What the server says it listens on, once it does."""
        while self._server.poll() is None:
            with open(log) as lines:
                for line in lines:
                    if line.endswith("\n") and "http://" in line:
                        return line.split("http://", 1)[1].split()[0].rstrip("/.,")
            time.sleep(0.05)
        with open(log) as lines:
            raise RuntimeError(f"cento serve ended: {lines.read()}")

    def set_query_arguments(self, ef):
        self._ef = ef

    def query(self, q, n):
        return self._ask(q, n)[0]

    def batch_query(self, X, n):
        self._found = []
        for start in range(0, len(X), BATCH):
            self._found += self._ask(X[start : start + BATCH], n)

    def get_batch_results(self):
        return self._found

    def get_memory_usage(self):
        """Of the server, in kilobytes; its files are mapped, and count as far as they were read."""
        return psutil.Process(self._server.pid).memory_info().rss / 1024 if self._server else 0.0

    def get_additional(self):
        return {"ef": self._ef}

    def done(self):
        if self._connection:
            self._connection.close()
            self._connection = None
        if self._server:
            self._server.terminate()
            self._server.wait()
            self._server = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def __str__(self):
        return f"Cento(vectors={self._stored}, ef={self._ef})"

    def _ask(self, queries, n):
        body = numpy.ascontiguousarray(queries, dtype="<f4").tobytes()
        path = f"/v1/neighbors?k={n}&ef={max(self._ef, n)}"
        self._connection.request("POST", path, body, {"Content-Type": "application/octet-stream"})
        answer = self._connection.getresponse()
        told = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"cento serve answers {answer.status}: {told.decode(errors='replace')}")
        # The ids are the numbers of the rows.
        return [[int(id) for id in found["ids"]] for found in json.loads(told)["neighbors"]]
