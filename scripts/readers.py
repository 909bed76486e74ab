#!/usr/bin/env python3
"""Quality of the readers: word F1 and word order of what they extract, against texts that are known.

usage: readers.py LINES TRUTH [--pages]

LINES   output of `cargo run --release --example read -- FOLDER`
TRUTH   folder whose files NAME.txt or NAME.md (at any depth) are the true texts of the files NAME.*; with --pages, a JSONL
        file of pages: _id `NAME#pN` (from 0) and text

Words are runs of letters and digits, in lower case. F1 is that of the two bags of words. Order is the Indel similarity
2 LCS / (n + m) over the first 4,000 words of each.
"""
import collections, json, os, re, sys

def words(text):
    return re.findall(r"[^\W_]+", text.lower())

def f1(a, b):
    if not a or not b:
        return float(a == b)
    common = sum((collections.Counter(a) & collections.Counter(b)).values())
    return 2 * common / (len(a) + len(b))

def order(a, b):
    """Longest common subsequence by bits (Hyyrö 2004)."""
    a, b = a[:4000], b[:4000]
    if not a or not b:
        return float(a == b)
    at = collections.defaultdict(int)
    for i, word in enumerate(a):
        at[word] |= 1 << i
    full = (1 << len(a)) - 1
    row = full
    for word in b:
        both = row & at.get(word, 0)
        row = ((row + both) | (row - both)) & full
    return 2 * (len(a) - row.bit_count()) / (len(a) + len(b))

def truths(folder):
    found = {}
    for wanted, (path, _, names) in [(w, f) for w in (".txt", ".md") for f in os.walk(folder)]:
        for name in sorted(names):
            stem, extension = os.path.splitext(name)
            if extension == wanted:
                found.setdefault((os.path.basename(path), stem), os.path.join(path, name))
                found.setdefault(("", stem), os.path.join(path, name))
    return found

def main():
    lines, truth = sys.argv[1:3]
    by_page = "--pages" in sys.argv
    pages = collections.defaultdict(dict)
    if by_page:
        for line in open(truth):
            page = json.loads(line)
            name, number = page["_id"].rsplit("#p", 1)
            pages[name][int(number)] = page["text"]
    known = {} if by_page else truths(truth)
    rows, refused, figures = collections.defaultdict(list), collections.Counter(), collections.defaultdict(collections.Counter)
    for line in open(lines):
        line = json.loads(line)
        name, extension = os.path.splitext(os.path.basename(line["path"]))
        extension = extension[1:].lower()
        if "error" in line:
            refused[extension] += 1
            print("refused", line["error"], file=sys.stderr)
            continue
        figure = figures[extension]
        figure["files"] += 1
        figure["bytes"] += line.get("n_bytes", 0)
        figure["ms"] += line["ms"]
        figure["pages"] += (line.get("extraction") or {}).get("n_pages") or 0
        documents = [d for d in line["documents"] if "text" in d]
        if by_page and name in pages:
            read = collections.defaultdict(str)
            for document in documents:
                source = document["text"].encode()
                for block in document["blocks"]:
                    span, page = block["span"], block["anchor"]["page"]
                    read[page - 1] += source[span["start"]:span["end"]].decode()
            for number, text in pages[name].items():
                a, b = words(read[number]), words(text)
                rows[extension].append((f1(a, b), order(a, b), f"{name} page {number + 1}"))
            continue
        path = known.get((extension, name)) or known.get(("", name))
        if path:
            a, b = words("\n".join(d["text"] for d in documents)), words(open(path, errors="replace").read())
            rows[extension].append((f1(a, b), order(a, b), line["path"]))
    for extension, figure in sorted(figures.items()):
        known_rows = rows[extension]
        n = len(known_rows)
        seconds = figure["ms"] / 1e3 or 1e-9
        line = f"{extension:6} read {figure['files']:4} refused {refused[extension]:3} | {figure['bytes'] / 1e6 / seconds:7.2f} MB/s {figure['pages'] / seconds:8.1f} pages/s"
        if n:
            low = sum(row[0] < .8 for row in known_rows)
            mean = lambda i: sum(row[i] for row in known_rows) / n
            line += f" | with truth {n:4} F1 {mean(0):.3f} (<.8: {low}) order {mean(1):.3f}"
        print(line)
    if "--worst" in sys.argv:
        for extension, known_rows in sorted(rows.items()):
            for row in sorted(known_rows)[:12]:
                print(f"{extension} F1 {row[0]:.3f} order {row[1]:.3f} {row[2]}")

main()
