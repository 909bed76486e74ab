#!/usr/bin/env python3
"""Write a policy with some settings changed: with_settings.py POLICY OUT [key=value | -table]...

`key=value` sets a key above the first table (the value as TOML), `-table` drops a table such as [priors].
"""

import pathlib
import sys


def main(policy, out, *changes):
    head, *tables = ("\n" + pathlib.Path(policy).read_text()).split("\n[")
    lines = [line for line in head.strip().splitlines() if not line.startswith("#")]
    for change in changes:
        if change.startswith("-"):
            tables = [table for table in tables if not table.startswith(change[1:] + "]")]
        else:
            key, value = change.split("=", 1)
            lines = [line for line in lines if line.split("=")[0].strip() != key]
            lines.append(f"{key} = {value}")
    text = "\n".join(lines + ["[" + table.strip() for table in tables]) + "\n"
    pathlib.Path(out).write_text(text)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
