#!/usr/bin/env python3
"""Write the policies of the segment tables: rse_policies.py OUT

OUT/PRESET.toml for dsRAG's three presets; OUT/SETTING-VALUE.toml for each value of a setting, the others those of
"balanced", or of the tutorial for the threshold of its running sum.
"""

import pathlib
import sys

SWEPT = {
    "irrelevant_chunk_penalty": ["0.05", "0.1", "0.18", "0.3", "0.4"],
    "minimum_value": ["0.1", "0.3", "0.5", "0.7"],
    "decay_rate": ["10.0", "30.0", "100.0", "200.0"],
}
THRESHOLDS = ["0.2", "0.3", "0.4", "0.5"]


def main(out):
    folder = pathlib.Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for preset in ("balanced", "precision", "find_all"):
        (folder / f"{preset}.toml").write_text(f'[rse]\npreset = "{preset}"\n')
    for setting, values in SWEPT.items():
        for value in values:
            (folder / f"{setting}-{value}.toml").write_text(f"[rse]\n{setting} = {value}\n")
    for value in THRESHOLDS:
        (folder / f"threshold-{value}.toml").write_text(f"[kadane]\nrelevance_threshold = {value}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
