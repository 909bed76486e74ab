"""Bytes and characters."""

import random

import pytest
from cento.spans import characters


def test_bytes_become_characters():
    assert characters("abc", [(0, 3), (1, 1)]) == [(0, 3), (1, 1)]
    assert characters("né🌊x", [(0, 1), (1, 3), (3, 7), (0, 8)]) == [(0, 1), (1, 2), (2, 3), (0, 4)]
    assert characters("", [(0, 0)]) == [(0, 0)]


def test_what_is_no_bound_of_a_character_is_an_error():
    for text, span in [("né", (0, 2)), ("né", (0, 4)), ("a", (0, 2)), ("a", (-1, 1)), ("é", (-1, 2))]:
        with pytest.raises(ValueError):
            characters(text, [span])


def test_any_text_is_cut_alike_in_bytes_and_characters():
    chance = random.Random(7)
    for _ in range(200):
        text = "".join(chance.choice("aé–🌊\n") for _ in range(chance.randrange(40)))
        bounds = sorted(chance.randrange(len(text) + 1) for _ in range(6))
        spans = [(len(text[:a].encode()), len(text[:b].encode())) for a, b in zip(bounds[::2], bounds[1::2])]
        chance.shuffle(spans)
        for (start, end), (first, last) in zip(spans, characters(text, spans)):
            assert text[first:last].encode() == text.encode()[start:end]
