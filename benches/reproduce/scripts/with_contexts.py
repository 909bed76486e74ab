#!/usr/bin/env python3
"""Run a command of `cento index --header llm` with a language model to ask.

    with_contexts.py ARG...

The program is that of the variable CENTO. CONTEXT_ENDPOINT and CONTEXT_MODEL name a real one. Without them a script answers at a port of this machine: it says the
heading or definition above the chunk, and the eight words that the document has most often, of those that the chunk does
not have. That is no language model: it shows what a document's own words do in the place of a context. The same request
has the same answer.
"""

import collections
import http.server
import json
import os
import re
import subprocess
import sys
import threading

WORD = re.compile(r"[^\W\d_]\w{3,}")
ABOVE = re.compile(r"^\s*(#+ |(pub |async |export |static )*(fn|def|class|struct|impl|enum|trait|func|function|interface|type)\b)")
N_WORDS = 8


def context(user: str) -> str:
    document, chunk = (part.split("\n", 1)[1].rsplit("\n", 1)[0] for part in user.rsplit("\n\nchunk-", 1))
    before = document.split(chunk, 1)[0].splitlines()
    above = next((line.strip() for line in reversed(before) if ABOVE.match(line)), "")
    known = {word.lower() for word in WORD.findall(chunk)}
    counts = collections.Counter(word for word in WORD.findall(document) if word.lower() not in known)
    often = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:N_WORDS]
    return f"{above} {' '.join(word for word, _ in often)}".strip() or "All of the document."


class Script(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": context(asked["messages"][1]["content"])}
        body = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main(arguments: list[str]) -> int:
    endpoint, model = os.environ.get("CONTEXT_ENDPOINT"), os.environ.get("CONTEXT_MODEL", "script")
    if endpoint is None:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Script)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}/v1"
    asking = ["--header", "llm", "--endpoint", endpoint, "--endpoint-model", model]
    return subprocess.run([os.environ["CENTO"], *arguments, *asking], check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
