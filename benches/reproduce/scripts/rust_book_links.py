#!/usr/bin/env python3
"""Questions with gold sections from the cross references of the Rust book.

    rust_book_links.py SRC OUT

SRC holds the Markdown of the book (mdBook). A sentence that links to a section of another file becomes a question:
without the text of the links, the words that lead to them (`in the ... section of Chapter 5`) and quotation marks, so
that it says what the section is about and not what it is called. Gold is the linked section: from its heading to the
next one of the same or a higher level, or the whole file where the link has no anchor. A sentence with several such
links has several. Any file may answer but the one that holds the sentence. Left out: sentences of fewer than WORDS_MIN
words, repeated ones, links that lead nowhere (named on stderr), and SUMMARY.md, the table of contents.

Written is an excerpt set: OUT/docs/, copies of the files; OUT/questions.jsonl with refs {doc, start, end, text} in code
points; and OUT/qrels/test.tsv, where gold is files. The same input gives the same bytes.
"""

import json
import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

# Words a question has at least.
WORDS_MIN = 8
CONTENTS = "SUMMARY.md"
# What ends a section without being text: definitions of links, and the old anchors of the heading that follows.
NO_TEXT = re.compile(r"\s*$|\[[^\]]+\]:\s|<a id=|<!--.*-->$")
FENCE = re.compile(r"\s*(```|~~~)")
HEADING = re.compile(r"(>\s*)?(#{1,6})\s+(.*?)\s*#*\s*$")
ANCHOR = re.compile(r'<a id="([^"]+)">')
DEFINITION = re.compile(r"\[([^\]]+)\]:\s*(\S+)")
LIST_ITEM = re.compile(r"\s*([-*+]|\d+\.)\s+")
# Text of a link, which may hold one pair of brackets, then its target in parentheses or the label of its definition.
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\](?:\(([^()\s]+)\)|\[([^\[\]]*)\])")
# A full stop, closing marks, white space, and what may begin a sentence.
SENTENCE_END = re.compile(r"(?<=[.!?])[)”\"’*_]*\s+(?=[A-Z“\"`(\[_*\ue000-\uf8ff])")
NUMBERS = re.compile(r"\b[Cc]hapters?\s+\d+(?:(?:,|\s+and|\s+or)\s+\d+)*|\b[Aa]ppendix\s+[A-Z]\b")
# Links are characters of the private use area while a paragraph is cut into sentences, and what is removed is this one.
PRIVATE = 0xE000
REMOVED = "\uf8ff"
# What was removed, the word before it and `section` after it: `in R`, `the R section of R`, `see R`.
POINTER = re.compile(
    rf"(?:\b(?:[Ii]n|of|from|[Ss]ee)\s+)?(?:\b[Tt]he\s+)?{REMOVED}(?:\s+sections?\b)?"
    rf"(?:\s+(?:in|of)\s+{REMOVED})*(?:\s+section\b)?"
)


class Section(NamedTuple):
    """A heading and what stands under it, in code points."""

    level: int
    quoted: bool
    start: int
    end: int


def main(source: Path, out: Path) -> None:
    paths = sorted(path for path in source.glob("*.md") if path.name != CONTENTS)
    pages = {path.name: Page(path.name, path.read_bytes().decode("utf-8")) for path in paths}
    if not pages:
        sys.exit(f"{source}: holds no Markdown")
    (out / "docs").mkdir(parents=True, exist_ok=True)
    (out / "qrels").mkdir(exist_ok=True)
    for page in pages.values():
        (out / "docs" / page.name).write_bytes(page.text.encode())

    questions, seen, dropped = [], set(), {"short": 0, "repeated": 0, "unresolved": 0}
    for page in pages.values():
        for line, sentence, links in page.sentences():
            targets = [link for link in links if link.target]
            refs, n_unresolved = gold(page, targets, pages)
            dropped["unresolved"] += n_unresolved
            text = question(sentence, links)
            words = re.findall(r"\w+(?:['’]\w+)*", text)
            key = " ".join(words).lower()
            if not refs:
                continue
            if len(words) < WORDS_MIN or key in seen:
                dropped["repeated" if key in seen else "short"] += 1
                continue
            seen.add(key)
            scope = [name for name in pages if name != page.name]
            record = {"id": f"link{len(questions) + 1:03}", "question": text, "source": f"{page.name}:{line}"}
            questions.append(record | {"scope": scope, "refs": refs})
    judgements = ["query-id\tcorpus-id\tscore"]
    for record in questions:
        documents = sorted({ref["doc"] for ref in record["refs"]})
        judgements.extend(f"{record['id']}\tdocs/{document}\t1" for document in documents)
    lines = (json.dumps(record, ensure_ascii=False) for record in questions)
    (out / "questions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    (out / "qrels" / "test.tsv").write_text("\n".join(judgements) + "\n", encoding="utf-8", newline="\n")
    print(f"{len(pages)} files, {len(questions)} questions; left out: {dropped}")


class Link(NamedTuple):
    """A link as it stands in a sentence; no target if it leads out of the book."""

    text: str
    target: str | None


class Page:
    """A file of the book."""

    def __init__(self, name: str, text: str):
        self.name, self.text = name, text
        self.sections: dict[str, Section] = {}
        self.definitions = {label(m[1]): m[2] for m in DEFINITION.finditer(text) if at_line_start(text, m.start())}
        self.read_sections()

    def lines(self) -> Iterator[tuple[int, str, bool]]:
        """Offset, text without the line end, and whether it is inside a fence, of every line."""
        at, fenced = 0, False
        for line in self.text.split("\n"):
            mark = bool(FENCE.match(line.lstrip("> ")))
            yield at, line, fenced or mark
            fenced ^= mark
            at += len(line) + 1

    def read_sections(self) -> None:
        """Sections by the names that mdBook gives their headings, and by the anchors right above them."""
        opened: list[tuple[Section, list[str]]] = []
        anchors: list[str] = []
        for at, line, fenced in self.lines():
            heading = None if fenced else HEADING.match(line)
            if heading:
                quoted, level = bool(heading[1]), len(heading[2])
                self.close(opened, at, lambda section: section.quoted if quoted else True, level)
                opened.append((Section(level, quoted, at, at), [slug(heading[3]), *anchors]))
                anchors = []
            elif opened and opened[-1][0].quoted and not line.startswith(">"):
                self.close(opened, at, lambda section: section.quoted, 0)
            if not fenced and not heading:
                anchors = [*anchors, *ANCHOR.findall(line)] if ANCHOR.search(line) or not line.strip() else []
        self.close(opened, len(self.text), lambda _: True, 0)

    def close(self, opened: list, end: int, which, level: int) -> None:
        """Ends the innermost sections that are meant and not above a level."""
        while opened and which(opened[-1][0]) and opened[-1][0].level >= level:
            section, names = opened.pop()
            section = section._replace(end=end)
            for name in names:
                self.add(name, section)

    def add(self, name: str, section: Section) -> None:
        """The first of a name keeps it, the next ones are numbered, as mdBook numbers them."""
        known = [key for key in (name, *(f"{name}-{n}" for n in range(1, 100))) if key in self.sections]
        if not known:
            self.sections[name] = section
        elif section.start < self.sections[name].start:
            self.sections[f"{name}-{len(known)}"] = self.sections[name]
            self.sections[name] = section
        else:
            self.sections[f"{name}-{len(known)}"] = section

    def span(self, anchor: str) -> tuple[int, int] | None:
        """The section of an anchor, the whole file from its first heading without one, and no more than its text."""
        first = min(section.start for section in self.sections.values())
        section = self.sections.get(anchor) if anchor else Section(0, False, first, len(self.text))
        if section is None:
            return None
        kept = self.text[section.start : section.end].split("\n")
        while NO_TEXT.match(kept[-1]):
            kept.pop()
        return section.start, section.start + len("\n".join(kept))

    def sentences(self) -> Iterator[tuple[int, str, list[Link]]]:
        """Line, text with a character of the private area for each link, and links, of the sentences that link."""
        for line, paragraph in self.paragraphs():
            links: list[Link] = []

            def shorten(match: re.Match) -> str:
                target = match[2] or self.definitions.get(label(match[3] or match[1]))
                if target is None:
                    return match[0]
                links.append(Link(match[1], target if re.match(r"[^/:#]+\.html(#|$)", target) else None))
                return chr(PRIVATE + len(links) - 1)

            paragraph = LINK.sub(shorten, re.sub(r"<!--.*?-->", "", paragraph))
            for sentence in SENTENCE_END.split(paragraph):
                used = [ord(c) - PRIVATE for c in sentence if 0 <= ord(c) - PRIVATE < len(links)]
                if any(links[n].target for n in used):
                    in_order = {chr(PRIVATE + n): chr(PRIVATE + i) for i, n in enumerate(used)}
                    yield line, "".join(in_order.get(c, c) for c in sentence), [links[n] for n in used]

    def paragraphs(self) -> Iterator[tuple[int, str]]:
        """Number of the first line, and text on one line, of paragraphs and list items; no code, headings or tables."""
        lines: list[str] = []
        first = 1
        for number, (_, line, fenced) in enumerate(self.lines(), 1):
            text = re.sub(r"^(>\s?)+", "", line)
            item = LIST_ITEM.match(text)
            no_text = fenced or not text.strip() or HEADING.match(line) or DEFINITION.match(text)
            if no_text or text.startswith("|") or item:
                if lines:
                    yield first, " ".join(lines)
                lines = []
                if not item:
                    continue
                text = text[item.end() :]
            if not lines:
                first = number
            lines.append(text.strip())
        if lines:
            yield first, " ".join(lines)


def gold(page: Page, links: list[Link], pages: dict[str, Page]) -> tuple[list[dict], int]:
    """References to the sections that links of a page mean, each once, and the number of links that lead nowhere."""
    found, n_unresolved = set(), 0
    for link in links:
        file, _, anchor = link.target.partition("#")
        name = file.removesuffix(".html") + ".md"
        if name == page.name:
            continue
        span = pages[name].span(anchor) if name in pages else None
        if span is None:
            print(f"{page.name}: {link.target}: leads nowhere", file=sys.stderr)
            n_unresolved += 1
        else:
            found.add((name, *span))
    outer = [f for f in found if not any(f != o and f[0] == o[0] and o[1] <= f[1] and f[2] <= o[2] for o in found)]
    refs = [{"doc": n, "start": start, "end": end, "text": pages[n].text[start:end]} for n, start, end in sorted(outer)]
    return refs, n_unresolved


def question(sentence: str, links: list[Link]) -> str:
    """A sentence without links into the book, what leads to them, marks of Markdown and quotation marks."""
    for i, link in enumerate(links):
        sentence = sentence.replace(chr(PRIVATE + i), REMOVED if link.target else link.text)
    text = re.sub(r"<[^<>`]*>(?=[^`]*(?:`[^`]*`[^`]*)*$)", "", sentence)
    text = POINTER.sub(REMOVED, NUMBERS.sub(REMOVED, " ".join(text.split())))
    text = re.sub(rf"\s*\({REMOVED}\)|(?:\s*{REMOVED})+(?=[.,;:!?)])|{REMOVED}", "", text)
    text = re.sub(r",(?=[.,])", "", text)
    text = re.sub(r"(?<!\w)(_{1,2}|\*{1,2})(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
    text = " ".join(re.sub(r"[`“”\"]", "", text).split()).lstrip(" ,;")
    text = text.removeprefix("(") if text.count("(") > text.count(")") else text
    return text[:1].upper() + text[1:]


def slug(heading: str) -> str:
    """The name that mdBook gives a heading: letters, digits, `_` and `-`, in lower case, white space as `-`."""
    rendered = re.sub(r"(?<!\w)[_*](.+?)[_*](?!\w)", r"\1", heading)
    kept = ("-" if c.isspace() else c.lower() for c in rendered if c.isalnum() or c in "_-" or c.isspace())
    return "".join(kept)


def label(text: str) -> str:
    """The label of a link as definitions are found by: any case, any white space."""
    return " ".join(text.split()).casefold()


def at_line_start(text: str, at: int) -> bool:
    """Whether nothing but marks of a quotation stands before a place on its line."""
    return not text[text.rfind("\n", 0, at) + 1 : at].strip("> ")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
