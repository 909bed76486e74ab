#!/usr/bin/env python3
"""Anthropic's code set as whole files: the chunks that answer become spans of the files they were cut from.

    anth_code_whole.py SRC OUT

SRC holds files.jsonl (files with their paths), corpus.jsonl (their chunks), queries.jsonl and qrels/test.tsv (gold is
chunks). Written is an excerpt set: OUT/docs/, OUT/questions.jsonl with refs {doc, start, end, text} in code points,
and OUT/qrels/test.tsv, where gold is the files of the gold chunks.

The chunks of a file follow one another and cover it, so each is expected where the one before it ended, and a text
that occurs twice is not taken for its other occurrence. The name of a file is its repository and its path, with commas
for slashes: a file's title is its name without the extension, and a comma parts words as a slash does, where an
underscore would join them. What is not where it is expected ends the program. The same input gives the same bytes.
"""

import json
import sys
from pathlib import Path


def main(source: Path, out: Path) -> None:
    files = {record["_id"]: record for record in read_jsonl(source / "files.jsonl")}
    names = {file_id: file_name(record["path"]) for file_id, record in files.items()}
    if len(set(names.values())) != len(names):
        sys.exit(f"{source / 'files.jsonl'}: two files have one name")
    (out / "docs").mkdir(parents=True, exist_ok=True)
    (out / "qrels").mkdir(exist_ok=True)
    for file_id, record in files.items():
        (out / "docs" / names[file_id]).write_bytes(record["text"].encode())

    spans = chunk_spans(files, read_jsonl(source / "corpus.jsonl"))
    gold = read_gold(source / "qrels" / "test.tsv")
    questions, judgements = [], ["query-id\tcorpus-id\tscore"]
    for query in read_jsonl(source / "queries.jsonl"):
        refs = []
        for file_id, start, end in sorted(spans[chunk] for chunk in gold[query["_id"]]):
            refs.append({"doc": names[file_id], "start": start, "end": end, "text": files[file_id]["text"][start:end]})
        questions.append({"id": query["_id"], "question": query["text"], "refs": refs})
        documents = sorted({ref["doc"] for ref in refs})
        judgements.extend(f"{query['_id']}\tdocs/{document}\t1" for document in documents)
    lines = (json.dumps(question, ensure_ascii=False) for question in questions)
    (out / "questions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    (out / "qrels" / "test.tsv").write_text("\n".join(judgements) + "\n", encoding="utf-8", newline="\n")
    print(f"{len(files)} files, {len(spans)} chunks, {len(questions)} questions")


def file_name(path: list[str]) -> str:
    """`["owner/name", "/src/lib.rs"]` as `owner,name,src,lib.rs`."""
    whole = "/".join(part.strip("/") for part in path)
    if "," in whole or any(c.isspace() for c in whole):
        sys.exit(f"{whole}: a comma or a space, which would not be told from a slash or break a run file")
    return whole.replace("/", ",")


def chunk_spans(files: dict[str, dict], chunks: list[dict]) -> dict[str, tuple[str, int, int]]:
    """File, start and end of each chunk, in code points."""
    spans, ends = {}, dict.fromkeys(files, 0)
    for chunk in sorted(chunks, key=lambda chunk: (chunk["metadata"]["file"], chunk["metadata"]["index"])):
        file_id = chunk["metadata"]["file"]
        start = ends[file_id]
        end = start + len(chunk["text"])
        if files[file_id]["text"][start:end] != chunk["text"]:
            sys.exit(f"{chunk['_id']}: is not what {file_id} has at {start}..{end}")
        spans[chunk["_id"]] = (file_id, start, end)
        ends[file_id] = end
    for file_id, end in ends.items():
        if end != len(files[file_id]["text"]):
            sys.exit(f"{file_id}: its chunks end at {end}, the file at {len(files[file_id]['text'])}")
    return spans


def read_gold(path: Path) -> dict[str, list[str]]:
    """The chunks judged relevant to each query."""
    gold: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, chunk, grade = line.split("\t")
        if int(grade) > 0:
            gold.setdefault(query, []).append(chunk)
    return gold


def read_jsonl(path: Path) -> list[dict]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines if line.strip()]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
