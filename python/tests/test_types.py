"""The types are those that the program describes, and its package says that it has types."""

import dataclasses
import importlib.resources
import subprocess
import sys

import cento
from cento import types
from conftest import ROOT


def test_the_types_are_current():
    command = [sys.executable, str(ROOT / "scripts/python-types"), "--binary", cento.binary(), "--check"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_package_is_typed():
    assert importlib.resources.files("cento").joinpath("py.typed").is_file()


def test_every_option_is_known():
    assert {"k", "filter", "mode", "within"} <= set(types.SearchOptions.__annotations__)
    assert "query" not in types.SearchOptions.__annotations__
    assert {"budget", "strategy"} <= set(types.ContextOptions.__annotations__)
    assert dataclasses.is_dataclass(types.Hit) and types.Hit.__dataclass_params__.frozen


def test_a_field_that_nobody_knows_is_left_out_and_one_that_is_missing_is_none():
    from cento._decode import decode

    range_ = decode(types.Range, {"start": 1, "later": {"a": 1}})
    assert (range_.start, range_.end) == (1, None)
