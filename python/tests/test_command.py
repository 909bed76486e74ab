"""The program that the package brings, and passages of other engines."""

import os
import pathlib
import subprocess
import sys

import cento
import pytest
from cento.command import flags
from conftest import TINY


def test_the_program_is_that_of_this_environment():
    found = pathlib.Path(cento.binary())
    assert found == pathlib.Path(sys.executable).parent / "cento"
    version = subprocess.run([found, "--version"], check=True, capture_output=True, text=True).stdout
    from importlib.metadata import version as installed

    assert version == f"cento {installed('cento')}\n"


def test_without_a_program_it_is_told(monkeypatch):
    monkeypatch.setattr(os.path, "isfile", lambda _: False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(cento.BinaryNotFound, match="install the wheel of Cento again"):
        cento.binary()


def test_options_are_written_as_flags():
    given = {"chunk_tokens": 64, "lossy": True, "quiet": False, "model": None, "root": ["a", "b=c"], "format_": "md"}
    assert flags(given) == ["--chunk-tokens=64", "--lossy", "--root=a", "--root=b=c", "--format=md"]


def test_indexing_again_finds_nothing_new(fresh):
    done = cento.index(fresh / "notes", collection=fresh / "collection", model=TINY)
    assert (done["n_added"], done["n_unchanged"]) == (0, 3)


def test_an_error_of_a_command_has_its_words_and_its_code(tmp_path):
    with pytest.raises(cento.CommandError, match="nowhere") as error:
        cento.index(tmp_path / "nowhere", collection=tmp_path / "collection")
    assert error.value.exit_code == 3
    with pytest.raises(cento.CommandError) as error:
        cento.run("search", "--no-such-flag")
    assert error.value.exit_code == 2
    with pytest.raises(cento.CommandError) as error:
        cento.index("--version", collection=tmp_path / "collection")  # a path, never a flag
    assert error.value.exit_code == 3


def test_texts_alone_are_ranked_as_they_come():
    texts = [f"Fact {number}: the moon moves the sea – tide {number} 🌊." for number in range(30)]
    made = cento.assemble("what moves the sea", texts, budget=40)
    assert 0 < made.n_tokens <= 40 and made.sources[0].passage == 0
    assert all(texts[source.passage][source.start : source.end] == source.text for source in made.sources)
    scored = cento.assemble("what moves the sea", [(text, -at) for at, text in enumerate(texts)], budget=40)
    assert scored.text == made.text


def test_passages_that_overlap_are_delivered_once():
    whole = "Ebb – flow. The moon moves the sea. Twice a day."
    parts = [(0, 35), (12, len(whole))]
    passages = [
        {"document": "d", "text": whole[a:b], "score": 1.0, "characters": {"start": a, "end": b}} for a, b in parts
    ]
    made = cento.assemble("moon", passages, budget=100)
    assert made.text.count("The moon moves the sea.") == 1
    assert made.citations[0].passages[0].in_document is not None


def test_what_cannot_be_assembled_is_told():
    with pytest.raises(cento.CommandError, match="no text"):
        cento.assemble("moon", [""])
    with pytest.raises(cento.CommandError, match="did you mean"):
        cento.assemble("moon", ["text"], bugdet=3)
    with pytest.raises(ValueError):
        cento.assemble("moon", [("text", float("nan"))])
    with pytest.raises(cento.CommandError):
        cento.assemble("moon", [])
