#!/usr/bin/env python3
"""Write the sets and policies of SEAL's controls: seal_controls.py DATA OUT SET...

OUT/policies/{replace,expand}-L.toml: three passages, one a document, L = 0, 1, 3, 5 loops; `expand` keeps what `replace` evicts.

For each SET of DATA (BEIR layout):
  OUT/SET.distractors-N  N = 2, 4 documents for every question that echo it and answer nothing, beside the set's own
  OUT/SET.named          the questions that write a title of a gold document of two words or more, as they are
  OUT/SET.explained      the same, with the initials in the title's place; the gold document gives its initials, "Title (TI)"
  OUT/SET.unexplained    the same, and no document gives them
  OUT/SET.lists          three questions asked as one: five gold documents and more, for three places

The same input gives the same bytes.
"""

import json
import pathlib
import re
import sys

K = 3
LOOPS = (0, 1, 3, 5)
DISTRACTORS = (2, 4)
ECHOES = (
    ("On a question of {name}", "People often ask: {question} The matter comes up again and again, and nobody has settled it."),
    ("{name} in conversation", "Asked about {words}, most speakers changed the subject. No record of what they said was kept."),
    ("A note about {name}", "This note is on {words}. It names the matter, and leaves everything else to other notes."),
    ("{name}, a list of open points", "Open points: {words}. For each of them the reader is sent to a page that is not written yet."),
)
SMALL = set("a an and are as at by did do does for from had has have how in is it of on or that the their to was were what when where "
            "which who whom whose will with".split())


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def content(text):
    return [word for word in re.findall(r"[\w'’-]+", text) if word.lower() not in SMALL]


def initials(title):
    words = [word for word in re.sub(r" \(.*\)$", "", title).split() if word.lower() not in SMALL]
    return "".join(word[0].upper() for word in words if word[0].isalpha())


def write(folder, corpus, queries, gold):
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, records in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    rows = [f"{query['_id']}\t{document}\t1\n" for query in queries for document in gold[query["_id"]]]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))


def echoes(query, n):
    words = content(query["text"])
    names = [word for word in words if word[0].isupper()] or words
    for at, (title, text) in enumerate(ECHOES[:n]):
        said = words[at:] + words[:at]  # another order, so that they are no copies of each other
        filled = {"name": " ".join(names[:3]), "words": ", ".join(said), "question": query["text"]}
        yield {"_id": f"echo-{query['_id']}-{at}", "title": title.format(**filled), "text": text.format(**filled)}


def aliased(corpus, queries, gold):
    """Questions with initials for the title of a gold document, and these titles."""
    titles = {document["_id"]: document["title"] for document in corpus}
    named, short, explained = [], [], {}
    for query in queries:
        for document in gold[query["_id"]]:
            title = re.sub(r" \(.*\)$", "", titles[document])
            at = query["text"].lower().find(title.lower())
            alias = initials(title)
            if len(title.split()) > 1 and 2 <= len(alias) <= 8 and at >= 0:
                named.append(query)
                text = query["text"][:at] + alias + query["text"][at + len(title):]
                short.append({**query, "text": text})
                explained[document] = f"{title} ({alias})"
                break
    return named, short, explained


def main(data, out, sets):
    policies = pathlib.Path(out) / "policies"
    policies.mkdir(parents=True, exist_ok=True)
    for update in ("replace", "expand"):
        for loops in LOOPS:
            text = f'[seal]\nbudget = {{ items = {K} }}\nupdate = "{update}"\nmax_per_document = 1\nloops = {loops}\n'
            (policies / f"{update}-{loops}.toml").write_text(text)
    for name in sets:
        source, made = pathlib.Path(data) / name, lambda kind: pathlib.Path(out) / f"{name}.{kind}"
        corpus, queries = read(source / "corpus.jsonl"), read(source / "queries.jsonl")
        gold = {}
        for row in (source / "qrels" / "test.tsv").read_text().splitlines()[1:]:
            query, document, score = row.split("\t")
            if int(score) > 0:
                gold.setdefault(query, []).append(document)
        for n in DISTRACTORS:
            write(made(f"distractors-{n}"), corpus + [echo for query in queries for echo in echoes(query, n)], queries, gold)
        named, short, explained = aliased(corpus, queries, gold)
        given = lambda record: {**record, "text": f"{explained[record['_id']]}. {record['text']}"} if record["_id"] in explained else record
        write(made("named"), corpus, named, gold)
        write(made("explained"), [given(record) for record in corpus], short, gold)
        write(made("unexplained"), corpus, short, gold)
        lists = [queries[at : at + 3] for at in range(0, len(queries) - 2, 3)]
        joined = [{"_id": "+".join(query["_id"] for query in three), "text": " ".join(query["text"] for query in three)} for three in lists]
        union = {one["_id"]: sorted({document for query in three for document in gold[query["_id"]]}) for one, three in zip(joined, lists)}
        joined = [one for one in joined if len(union[one["_id"]]) > K]
        write(made("lists"), corpus, joined, union)
        print(f"{name}: {len(named)} questions with an alias, {len(joined)} lists")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
