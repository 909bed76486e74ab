#!/usr/bin/env python3
"""Write the policies of the SEAL table: seal_policies.py OUT

OUT/seal-K-L.toml for K = 1, 3, 5 passages, one a document, and L = 0, 1, 3 loops; OUT/adaptive-B.toml for Adaptive-k with a
buffer of B = 0 and 5.
"""

import pathlib
import sys


def main(out):
    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for k in (1, 3, 5):
        for loops in (0, 1, 3):
            text = f"[seal]\nbudget = {{ items = {k} }}\nmax_per_document = 1\nloops = {loops}\n"
            (folder / f"seal-{k}-{loops}.toml").write_text(text)
    for buffer in (0, 5):
        (folder / f"adaptive-{buffer}.toml").write_text(f"[adaptive]\nbuffer = {buffer}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
