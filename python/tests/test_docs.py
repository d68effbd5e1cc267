"""What is written holds: docstrings, the generated files, the tutorial."""

import doctest
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import gradus
from gradus import _base, _features, _info, _ratings, _report, _transform, factor, linear

PYTHON = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("module", [gradus, _base, _features, _info, _ratings, _report, _transform, factor, linear])
def test_examples_in_docstrings(module):
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_every_class_is_documented():
    for kind in gradus.models().values():
        text = kind.__doc__
        assert "Parameters\n" in text and "Examples\n" in text
        assert "```" not in text
        for name in kind().get_params():
            assert f"{name} : " in text, (kind, name)


def test_the_family_modules_are_what_the_registry_says():
    if not (PYTHON / "gradus" / "_gradus.abi3.so").exists():
        pytest.skip("the package is installed, not built in place")
    done = subprocess.run([sys.executable, PYTHON / "generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tutorial_runs(capsys, monkeypatch, tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(PYTHON / "examples" / "tutorial.py"))
    assert "recommend" in capsys.readouterr().out
