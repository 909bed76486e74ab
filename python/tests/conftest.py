"""What the tests share: the installed package, a folder of notes, the tiny encoder of the repository, a server."""

import json
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TINY = str(ROOT / "models/tiny")

NOTES = {
    "tides.md": "# Tides\n\nThe moon moves the sea – twice a day.\n\n"
    "## Spring tides\n\nSun and moon pull together 🌕.\n",
    "bread.md": "# Bread\n\nYeast lifts the dough. A crème pâtissière is another matter.\n",
    "sub/stars.txt": "Stars are born in clouds of gas. The nearest star is the sun.\n\nA star ends as a dwarf.\n",
}


@pytest.fixture(scope="session", autouse=True)
def own_settings(tmp_path_factory):
    """No setting, cache or model of the machine."""
    place = tmp_path_factory.mktemp("own")
    for name in list(os.environ):
        if name.startswith("CENTO") and name not in ("CENTO_DATA", "CENTO_REAL_MODEL", "CENTO_REAL_CACHE"):
            del os.environ[name]
    os.environ |= {
        "XDG_CONFIG_HOME": str(place / "config"),
        "XDG_CACHE_HOME": str(place / "cache"),
        "XDG_DATA_HOME": str(place / "data"),
    }


def write_notes(folder):
    for name, text in NOTES.items():
        path = folder / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="session")
def place(tmp_path_factory, own_settings):
    """A folder with notes and a collection of them."""
    import cento

    folder = tmp_path_factory.mktemp("place")
    write_notes(folder)
    done = cento.index(folder / "notes", collection=folder / "collection", model=TINY, chunk_tokens=16)
    assert done["n_added"] == 3
    return folder


@pytest.fixture(scope="session")
def server(place):
    import cento

    with cento.Server(place / "collection", model=TINY) as server:
        yield server


@pytest.fixture()
def fresh(tmp_path):
    """A folder of the test's own, with a collection that it may change."""
    import cento

    write_notes(tmp_path)
    cento.index(tmp_path / "notes", collection=tmp_path / "collection", model=TINY, chunk_tokens=16)
    return tmp_path


def is_alive(pid):
    """The process is there, and not merely waiting to be reaped."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        return state != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def program(text, **values):
    """A program of Python as arguments of a command, which finds its values in `given`."""
    return [sys.executable, "-c", f"import json; given = json.loads({json.dumps(json.dumps(values))})\n{text}"]
