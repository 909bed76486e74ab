#!/usr/bin/env python3
"""Make a copy of a pulled encoder that reads more tokens: longer_window.py NAME TOKENS OUT

all-MiniLM-L6-v2 is configured for 256 tokens and has positions for 512. The copy differs in that one number; its files
are those of CENTO_MODELS (or ~/.cache/cento/models), linked.
"""

import json
import os
import pathlib
import sys


def main(name, tokens, out):
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    models = pathlib.Path(os.environ.get("CENTO_MODELS") or cache / "cento" / "models")
    source, out = (models / name).resolve(), pathlib.Path(out)
    positions = json.loads((source / "config.json").read_text())["max_position_embeddings"]
    if int(tokens) > positions:
        sys.exit(f"{name} has {positions} positions, {tokens} tokens do not fit")
    for path in sorted(source.rglob("*")):
        target = out / path.relative_to(source)
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.name == "sentence_bert_config.json":
            settings = json.loads(path.read_text())
            settings["max_seq_length"] = int(tokens)
            target.write_text(json.dumps(settings, indent=2) + "\n")
        else:
            target.symlink_to(path)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
