"""Machine learning from least squares to diffusion, behind one contract.

Estimators live in family modules and behave as scikit-learn's do::

    from gradus.linear import Ridge
    from gradus.factor import Als
    from gradus.latent import Pca

    Ridge().fit(X, y).predict(X_new)
    Pca(n_components=2).fit_transform(X)
    Als(rank=32).fit((users, items, ratings)).recommend(["ann", "bob"], n=10)

`gradus.load` opens a model file, whichever of Python, Rust and the command line wrote it.
`gradus.audit` measures whether a model treats groups alike, and how many of its decisions small changes reverse.
`gradus.compare` tells which model suits your data, `gradus.models()` lists every estimator, `gradus.set_threads` says how many threads they may use.
"""

from gradus import audit, factor, latent, linear, nn, text
from gradus._base import load, models
from gradus._compare import Comparison, compare
from gradus._gradus import __version__, get_threads, set_threads
from gradus._info import info
from gradus._path import RegularizationPath
from gradus._ratings import ranking_scorer
from gradus._report import Report
from gradus._tables import read_table

__all__ = [
    "Comparison",
    "RegularizationPath",
    "Report",
    "__version__",
    "audit",
    "compare",
    "factor",
    "get_threads",
    "info",
    "latent",
    "linear",
    "load",
    "models",
    "nn",
    "ranking_scorer",
    "read_table",
    "set_threads",
    "text",
]
