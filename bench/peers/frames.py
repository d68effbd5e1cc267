"""Readers of a ratings CSV with data frame libraries, to columns only or on to CSR and CSC."""

READERS = {
    "polars": ("polars", "read_csv"),
    "pandas-c": ("pandas", 'read_csv, engine="c"'),
    "pandas-pyarrow": ("pandas", 'read_csv, engine="pyarrow"'),
}


def reader(key, threads):
    """Imports the library of `key` ("polars" or "polars+csr") and returns a function path → number of rows."""
    library, _, matrix = key.partition("+")
    read = {"polars": _polars, "pandas-c": _pandas_c, "pandas-pyarrow": _pandas_pyarrow}[library](threads)
    if not matrix:
        return lambda path: len(read(path))

    import numpy
    import pandas
    import scipy.sparse

    def read_matrices(path):
        frame = read(path)
        # pandas' hash table is the fastest id map among numpy, pandas and polars, so all readers use it.
        users, user_names = pandas.factorize(frame["user"].to_numpy())
        items, item_names = pandas.factorize(frame["item"].to_numpy())
        values = frame["rating"].to_numpy().astype(numpy.float32)
        users, items = users.astype(numpy.int32), items.astype(numpy.int32)
        shape = (len(user_names), len(item_names))
        by_user = scipy.sparse.csr_matrix((values, (users, items)), shape=shape)
        by_item = by_user.tocsc()
        return int(by_item.nnz)

    return read_matrices


def _polars(threads):
    import polars

    assert polars.thread_pool_size() == threads, "POLARS_MAX_THREADS was not honoured"
    return polars.read_csv


def _pandas_c(threads):
    import pandas

    return lambda path: pandas.read_csv(path, engine="c")


def _pandas_pyarrow(threads):
    import pandas
    import pyarrow

    pyarrow.set_cpu_count(threads)
    return lambda path: pandas.read_csv(path, engine="pyarrow")
