"""Places in texts: Cento counts bytes of UTF-8, Python counts characters."""

from __future__ import annotations

from collections.abc import Iterable


def characters(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of bytes of a text as spans of its characters, so that `text[start:end]` is what each names.

    A bound inside a character, or beyond the text, is a `ValueError`.
    """
    spans = list(spans)
    if text.isascii():
        bounds = {at: at for span in spans for at in span if 0 <= at <= len(text)}
    else:
        bounds = _counted(text.encode("utf-8", "surrogatepass"), sorted({at for span in spans for at in span}))
    for span in spans:
        for at in span:
            if at not in bounds:
                raise ValueError(f"byte {at} is not where a character of the text begins")
    return [(bounds[start], bounds[end]) for start, end in spans]


def _counted(raw: bytes, places: list[int]) -> dict[int, int]:
    """The characters before each of the ascending places, those alone where a character begins."""
    known, count, done = {}, 0, 0
    for at in places:
        if not 0 <= at <= len(raw) or (at < len(raw) and raw[at] & 0xC0 == 0x80):
            continue
        count += sum(byte & 0xC0 != 0x80 for byte in raw[done:at])
        done = at
        known[at] = count
    return known


def n_bytes(text: str) -> int:
    """The bytes that a text has in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))
