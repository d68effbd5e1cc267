"""Tables from files, read as the command line reads them."""

import warnings

from gradus import _gradus


def read_table(
    path,
    *,
    delimiter=None,
    header=None,
    decimal_comma=None,
    quotes=None,
    missing_values=(),
    on_error="fail",
    return_info=False,
):
    """Read a table: delimited text, JSON Lines or Parquet, compressed or not.

    Everything not given is found out from the file. A column holds numbers if all its values are numbers, or all but
    a few; those few count as missing, and a warning shows them.

    Parameters
    ----------
    path : str or path-like
        The file.
    delimiter : str, optional
        What stands between columns: a character, one twice (``"::"``), ``"tab"`` or ``"blanks"``.
    header : bool, optional
        Whether the first row holds names.
    decimal_comma : bool, optional
        Whether numbers are written with a decimal comma.
    quotes : bool, optional
        Whether quotes hold cells together, or are characters like any other.
    missing_values : sequence of str
        Further words that mean a missing value.
    on_error : {"fail", "skip"}
        What to do with a row that cannot be read.
    return_info : bool
        Whether to return what was found out about the file, too, instead of warning.

    Returns
    -------
    dict
        The columns by name: an array of ``float64`` (NaN is missing), or a list of ``bool`` or ``str`` (``None`` is
        missing). ``pandas.DataFrame(read_table(path))`` makes a frame of it.
    """
    columns, info = _gradus.read_table(
        path, delimiter, header, decimal_comma, quotes, [str(word) for word in missing_values], on_error
    )
    if return_info:
        return columns, info
    for remark in info.get("remarks", ()):
        warnings.warn(f"{path}: {remark}", stacklevel=2)
    return columns
