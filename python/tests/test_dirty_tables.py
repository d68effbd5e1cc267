"""The files that the Rust tests read, read from Python: one expectation for all."""

import json
import math
import pathlib

import pytest

import gradus

FOLDER = pathlib.Path(__file__).parents[2] / "crates" / "gradus" / "tests" / "dirty"
CASES = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["file"] for case in CASES])
def test_dirty_file(case):
    path, options = FOLDER / case["file"], case.get("options", {})
    if "error" in case:
        with pytest.raises(ValueError) as raised:
            gradus.read_table(path, **options)
        assert case["error"] in str(raised.value)
        return
    columns, info = gradus.read_table(path, return_info=True, **options)
    assert list(columns) == [column["name"] for column in case["columns"]]
    assert info["skipped"] == case.get("skipped", 0)
    if "layout" in case:
        assert info["layout"] == case["layout"]
    if "remark" in case:
        assert any(case["remark"] in remark for remark in info["remarks"])
    for column in case["columns"]:
        values = columns[column["name"]]
        if column["type"] == "number":
            values = [None if math.isnan(value) else value for value in values]
        assert list(values) == column["values"]


def test_odd_cells_are_warned_of():
    with pytest.warns(UserWarning, match="`oops`"):
        gradus.read_table(FOLDER / "stray_cells.csv")
    with pytest.raises(ValueError, match="delimiter"):
        gradus.read_table(FOLDER / "bars.txt", delimiter="ab")
    with pytest.raises(FileNotFoundError):
        gradus.read_table(FOLDER / "none.csv")
