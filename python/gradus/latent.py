"""Models of latent structure.

Written by python/generate.py from the definitions in crates/gradus-latent: change those.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from gradus._latent import PrincipalComponents

__all__ = [
    "Pca",
]


class Pca(PrincipalComponents):
    """Principal component analysis: the directions in which the data varies most.

    The components are the eigenvectors `v_1, …, v_k` of the covariance matrix of the features, largest
    eigenvalue first; a sample `x` becomes `z = V (x − μ)`, and `Vᵀ z + μ` is the nearest point to `x` on the
    best-fitting plane of `k` dimensions. The sign of a component is such that its largest entry is
    positive. The explained variance of a component is its eigenvalue, `Σ w (z_i)² / (Σ w − 1)`.

    The model is also a distribution, that of probabilistic PCA: a normal distribution with mean `μ` and
    covariance `Vᵀ (Λ − σ²) V + σ² I`, where the noise variance `σ²` is the mean of the eigenvalues left out.
    It tells how probable a sample is, and draws new ones.

    Without `n_components` their number is chosen by the log-likelihood of held-out samples. With all
    components nothing is lost and the features are only rotated.

    Cost: `O(N D²)` and `O(D³)` through the covariance matrix of `D` features, `O(D N²)` with fewer samples
    than features, some `10 k` products with the data for `randomized`. Features in different units should
    be brought to one scale first: a feature in millimetres has a million times the variance of one in
    metres. The objective in the report is the variance left out.

    References: Tipping, Bishop: Probabilistic principal component analysis, 1999. Halko, Martinsson, Tropp:
    Finding structure with randomness, 2011. Musco, Musco: Randomized block Krylov methods, 2015.

    Parameters
    ----------
    n_components : float or None, default None
        Number of components, if 1 or more; if below 1, so many that they explain this share of the
        variance. Left out, the number under which held-out samples are most probable. Must be a
        finite number greater than 0, or left out.
    solver : {"auto", "covariance", "svd", "power", "randomized"}, default 'auto'
        How the components are found.
        - "auto": By the shape of the data: `svd` for little data, `covariance` for up to 1000
          features (or samples), `randomized` beyond that and for sparse data with more than 300
          features.
        - "covariance": The eigenvectors of the covariance matrix, or of the products of samples if
          there are fewer of those: one pass over the data. Variances are right to about 1e-15 of
          the largest.
        - "svd": The singular value decomposition of the centred data: small variances keep their
          digits, too. Of dense data.
        - "power": Power iterations, one component after another, each with the ones before
          projected out. Slow where variances are alike: to see the method, and for a component or
          two.
        - "randomized": A block Krylov method from a random start, to the accuracy `tol`: for few
          components of large or sparse data, which stays sparse.
    whiten : bool, default False
        Whether transformed features are divided by their standard deviation in training.
    center : bool, default True
        Whether the mean is subtracted. Without it this is a truncated singular value decomposition,
        and variances are mean squares.
    tol : float, default 1e-06
        Accuracy of `randomized` and `power`: done when `‖C v − λ v‖ ≤ tol λ₁` for every component
        `v`, with the covariance `C`. A variance is then right to `tol λ₁`, and to about the square
        of `tol` where variances are not alike. Must be a number at least 0 and at most 1.
    max_iter : int, default 1000
        Largest number of restarts of `randomized`, and of iterations of `power` for each component.
        Must be an integer from 1 to 1000000.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    missing : {"refuse", "mean", "median", "category"}, default 'refuse'
        What stands for a missing value (NaN, None) in the features.
        - "refuse": Nothing: it is refused.
        - "mean": The mean of a number, the most frequent word of a category.
        - "median": The median of a number, the most frequent word of a category.
        - "category": A category of its own: of words a level, of numbers the mean and a second
          feature that is 1 where the value is missing. In columns where training has no missing
          value, the mean and the encoding of an unseen word.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    n_features_in_
        Number of features, or columns of the frame, seen in `fit`.
    feature_names_in_
        Their names, if `fit` got a data frame.
    components_
        The components, components × features: orthonormal rows, the largest entry of each positive.
    explained_variance_
        The variance of each component.
    explained_variance_ratio_
        The share of each component of the variance.
    singular_values_
        The singular values of the centred data.
    mean_
        The mean of the features; zeros with `center=False`.
    noise_variance_
        The mean variance in the directions left out, over features less components.
    n_components_
        The number of components.
    n_samples_
        The number of samples of training.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.latent import Pca
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> model = Pca().fit(X)
    >>> model.transform(X).shape[0]
    60
    """

    _kind = "pca"

    def __init__(
        self,
        *,
        n_components: float | None = None,
        solver: Literal["auto", "covariance", "svd", "power", "randomized"] = 'auto',
        whiten: bool = False,
        center: bool = True,
        tol: float = 1e-06,
        max_iter: int = 1000,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.whiten = whiten
        self.center = center
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.missing = missing
        self.verbose = verbose
