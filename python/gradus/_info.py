"""The description of a file, as the command line shows it."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

from gradus import _gradus


def info(path: str | os.PathLike[str], *, verify: bool = False, table: bool = False) -> dict[str, Any]:
    """Describes a model file, a checkpoint, a table or a file of ratings, as ``gradus info --json`` does.

    Parameters
    ----------
    path : str or path-like
        The file.
    verify : bool
        Whether to read a model or checkpoint to its end and compare everything in it with its checksums.
    table : bool
        Whether to take the file as a table, even if it could be one of ratings.

    Returns
    -------
    dict
        Of a model its kind, summary, parameters, report and coefficients; of a table its columns; of ratings their
        numbers and range.

    Examples
    --------
    >>> import gradus, os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "table.csv")
    >>> with open(file, "w") as out:
    ...     _ = out.write("colour,size\\nred,1\\nblue,2.5\\n")
    >>> [(column["name"], column["type"]) for column in gradus.info(file)["columns"]]
    [('colour', 'words'), ('size', 'number')]
    """
    found, remarks = _gradus.info(os.fspath(path), verify, table)
    for remark in remarks:
        warnings.warn(remark, stacklevel=2)
    return json.loads(found)
