"""What is written holds: docstrings, the generated files, the tutorial."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import gradus

PYTHON = Path(__file__).resolve().parents[1]
NAMES = sorted(found.name for found in pkgutil.iter_modules(gradus.__path__) if found.name != "_gradus")
MODULES = ["gradus", *(f"gradus.{name}" for name in NAMES)]


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings(module):
    failed, _ = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
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


def test_the_stubs_of_the_compiled_part_are_complete():
    # `ranking` once had another name for an argument there, and four functions were missing.
    compiled = gradus._gradus
    stubs = ast.parse((PYTHON / "gradus" / "_gradus.pyi").read_text())
    functions = {node.name: node for node in stubs.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in stubs.body if isinstance(node, ast.ClassDef)}
    for name in (name for name in dir(compiled) if not name.startswith("_")):
        real = getattr(compiled, name)
        if not inspect.isclass(real):
            assert name in functions, name
            _same_arguments(name, functions[name], real)
            continue
        members = {node.name: node for node in classes[name].body if isinstance(node, ast.FunctionDef)}
        fields = {node.target.id for node in classes[name].body if isinstance(node, ast.AnnAssign)}
        public = {member for member in dir(real) if not member.startswith("_")}
        assert public == {member for member in {*members, *fields} if not member.startswith("_")}, name
        for member in public & set(members):
            _same_arguments(f"{name}.{member}", members[member], getattr(real, member))


def _same_arguments(name, stub, real):
    arguments = [argument.arg for argument in stub.args.args if argument.arg != "self"]
    there = [argument for argument in inspect.signature(real).parameters if argument != "self"]
    assert arguments == there or stub.args.kwarg is not None or stub.args.vararg is not None, name
