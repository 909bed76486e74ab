"""The pages on Python, and the one that stands beside the package: each of their examples is run."""

import os
import re
import subprocess
import sys

import pytest
from conftest import NOTES, ROOT, TINY, write_notes

#: What an example of a kind needs.
NEEDS = {
    "python": [],
    "python-numpy": ["numpy"],
    "python-pandas": ["pandas"],
    "python-arrow": ["pyarrow"],
    "python-ray": ["ray"],
    "python-langchain": ["langchain_core", "langchain_classic"],
    "python-llama-index": ["llama_index.core"],
    "python-haystack": ["haystack"],
    "python-dspy": ["dspy"],
    "python-trec": ["ir_datasets", "ir_measures"],
}


def examples():
    for page in ("docs/python.md", "docs/how-to/langchain.md", "docs/how-to/llama-index.md", "python/README.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for number, (kind, code) in enumerate(
            re.findall(r"^```(python[a-z-]*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        ):
            yield pytest.param(kind, code, id=f"{page}-{number}-{kind}")


@pytest.mark.parametrize(("kind", "code"), examples())
def test_an_example_runs(tmp_path, kind, code):
    for module in NEEDS[kind]:
        pytest.importorskip(module, reason=f"{module} is not installed")
    write_notes(tmp_path)
    (tmp_path / "docs.tsv").write_text("".join(f"{id}\t{' '.join(text.split())}\n" for id, text in NOTES.items()))
    (tmp_path / "queries.tsv").write_text("1\twhat moves the sea\n")
    (tmp_path / "qrels").write_text("1 0 tides.md 1\n")
    code = code.replace("cento.pull()", "cento.pull")  # the tiny encoder stands for the one that is downloaded
    environment = os.environ | {"CENTO_MODEL": TINY}
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0 and ran.stdout.strip(), ran.stderr


def test_the_page_has_an_example_of_each_kind():
    assert {param.values[0] for param in examples()} == set(NEEDS)
