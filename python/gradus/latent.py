"""Models of latent structure.

Written by python/generate.py from the definitions in crates/gradus-latent: change those.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gradus._clusters import CentreClusterer
from gradus._latent import PrincipalComponents
from gradus._nmf import NonNegativeFactors

__all__ = [
    "KMeans",
    "Nmf",
    "Pca",
]


class KMeans(CentreClusterer):
    """K-means: clusters around centres, each sample in the cluster of the nearest.

    It minimises the inertia `Σ w |x − c(x)|²`, the weighted sum of the squared distances of the samples `x` to their
    centres `c(x)`. Lloyd's algorithm assigns each sample to the nearest centre, moves each centre to the mean of its
    samples, and repeats; the inertia never rises. The problem is not convex, so the iterations begin at samples drawn far
    from each other (greedy k-means++), and the best of several starts is kept. A cluster that loses all samples takes
    the sample that is farthest from its own centre. Clusters are numbered by their weight, the largest first.

    Distances are found by products in single precision and decided in double precision wherever rounding could matter, and
    samples whose cluster cannot have changed are left out by Hamerly's bounds: the clusters are those of plain loops in
    double precision. An iteration costs at most `2 N k D` operations (`2 n k` for `n` entries of sparse features, which stay
    sparse), and late ones a fraction of that. Features far from 0 lose no digits.

    K-means looks for round clusters of like width. Features in unlike units need `standardize`; missing entries are not
    taken: impute them first.

    References: Lloyd: Least squares quantization in PCM, 1982. Arthur, Vassilvitskii: k-means++, 2007. Hamerly: Making
    k-means even faster, 2010. Sculley: Web-scale k-means clustering, 2010. Dhillon, Modha: Concept decompositions for large
    sparse text data using clustering, 2001.

    Parameters
    ----------
    n_clusters : int or None, default None
        Number of clusters. Left out, 8, or the number of samples where those are fewer. Must be an
        integer from 1 to 1000000, or left out.
    algorithm : {"lloyd", "mini_batch"}, default 'lloyd'
        How the centres are improved.
        - "lloyd": Lloyd's algorithm on all samples, exactly: it ends where no sample changes its
          cluster.
        - "mini_batch": Running means over batches in random order: an inertia some percent higher
          after few passes.
    metric : {"euclidean", "cosine"}, default 'euclidean'
        How distances are measured.
        - "euclidean": The distance in space.
        - "cosine": One minus the cosine of the angle (spherical k-means), for texts: samples are
          divided by their norms, and centres are directions. A sample without any feature is at a
          distance of 1 from every centre.
    standardize : bool or None, default None
        Whether each feature is divided by its standard deviation before distances are taken. Left
        out, it is where one feature has more than 90 % of the variance, as with features in unlike
        units; never for sparse features.
    n_init : int or None, default None
        Number of starts, of which the best is kept. Left out, as many as make the work of an
        iteration of all of them four billion products, at least 1 and 20 at most; the best is then
        improved by moves of single samples (Hartigan) where the data is small and dense. Must be an
        integer from 1 to 10000, or left out.
    max_iter : int, default 300
        Largest number of iterations of each start. Of mini-batches, an iteration goes over all
        samples once. Must be an integer from 1 to 1000000.
    tol : float, default 1e-06
        A start ends when an iteration lowers the inertia by less than this share of it; with 0,
        when no sample changes its cluster. Must be a number at least 0 and at most 1.
    batch_size : int, default 1024
        Samples of a mini-batch. Must be an integer from 1 to 100000000.
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
    init : {"k-means++"} or array, clusters × features, default 'k-means++'
        Where the iterations begin.
        - "k-means++": at samples drawn far from each other.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    labels_
        The cluster of each sample of training; −1 of one that belongs to none. Not in a model that
        was loaded.
    n_clusters_
        The number of clusters.
    cluster_sizes_
        The number of training samples in each cluster.
    n_features_in_
        Number of features, or columns of the frame, seen in `fit`.
    feature_names_in_
        Their names, if `fit` got a data frame.
    cluster_centers_
        The centres, clusters × features, in the units of the features.
    inertia_
        The weighted sum of the squared distances of the samples of training to their centres; of
        `cosine`, of one minus the cosine.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.latent import KMeans
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = KMeans().fit(X)
    >>> np.array_equal(model.predict(X), model.labels_)
    True
    """

    _kind = "kmeans"

    def __init__(
        self,
        *,
        n_clusters: int | None = None,
        algorithm: Literal["lloyd", "mini_batch"] = 'lloyd',
        metric: Literal["euclidean", "cosine"] = 'euclidean',
        standardize: bool | None = None,
        n_init: int | None = None,
        max_iter: int = 300,
        tol: float = 1e-06,
        batch_size: int = 1024,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        init: Literal["k-means++"] | Any = 'k-means++',
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.algorithm = algorithm
        self.metric = metric
        self.standardize = standardize
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.random_state = random_state
        self.missing = missing
        self.init = init
        self.warm_start = warm_start
        self.verbose = verbose


class Nmf(NonNegativeFactors):
    """Non-negative matrix factorisation: samples as sums of parts.

    The samples `X ≥ 0` (`N × D`) are approximated by `W H`, where `H ≥ 0` has a row for each of `k` components and
    `W ≥ 0` says how much of each component a sample has. Nothing can be subtracted, so that components tend to be parts:
    of faces, or topics of documents. The objective is

    `loss(X / s, W H) + l1 (D Σ W + N Σ H) + ½ l2 (D Σ W² + N Σ H²)`,

    with half the squared error or the divergence as loss, and `s` the root of the mean square of the entries of `X`
    (their mean for `kl`). So penalties mean the same whatever the unit and the size of the data, and data times `c`
    gives a reconstruction times `c`. A sample of weight 3 is three samples. The trace of the report is the objective in
    the unit of the data: times `s²`, or `s` for `kl`.

    Each iteration improves all rows of `W` and then all columns of `H`; no step raises the objective. The problem is not
    convex: another start may end elsewhere. Cost of an iteration: `4 n k` operations for `n` entries (those that are not 0,
    of sparse data) and some `10 (N + D) k²` for `frobenius`; `n k²` for `kl` by `newton`, `8 n k` by `multiplicative`.
    A sample is transformed by the best `W` for the components, to the last digits: an active set method, or Newton steps.
    Components are ordered by how much they contribute to the data. Missing entries are not taken: impute them first.

    References: Lee, Seung: Learning the parts of objects, 1999. Cichocki, Phan: Fast local algorithms for large scale
    non-negative matrix and tensor factorizations, 2009. Gillis, Glineur: Accelerated multiplicative updates and
    hierarchical ALS, 2012. Hsieh, Dhillon: Fast coordinate descent methods with variable selection for NMF, 2011.
    Boutsidis, Gallopoulos: SVD based initialization, 2008.

    Parameters
    ----------
    n_components : int or None, default None
        Number of components. Left out, half of the number of features, and 10 at most. It may be
        larger than the numbers of samples and of features. Must be an integer from 1 to 100000, or
        left out.
    loss : {"frobenius", "kl"}, default 'frobenius'
        What is minimised.
        - "frobenius": Half the sum of the squared errors: errors alike in size everywhere.
        - "kl": The Kullback–Leibler divergence `Σ x ln(x / y) − x + y`: for counts, whose errors
          grow with their size. Its cost grows with the entries that are not 0.
    solver : {"auto", "hals", "projected_als", "multiplicative", "newton"}, default 'auto'
        How it is minimised.
        - "auto": `hals` for `frobenius`, `newton` for `kl`.
        - "hals": Hierarchical alternating least squares, which is coordinate descent: one entry of
          a row at a time, eight sweeps for each product with the data. For `frobenius`.
        - "projected_als": Alternating least squares with what is negative set to 0, row by row; a
          row that this does not improve takes a sweep of `hals` instead. For `frobenius`.
        - "multiplicative": The multiplicative updates of Lee and Seung: slow, and an entry that is
          0 stays 0. For both losses.
        - "newton": A Newton step for each row of a factor in its entries that are not held at 0,
          the quadratic model minimised over non-negative rows by coordinate descent, with a line
          search. For `kl`.
    init : {"nndsvd", "nndsvda", "random"} or array, clusters × features, default 'nndsvda'
        Where the iterations begin.
        - "nndsvd": The positive parts of singular vectors (NNDSVD), with zeros. For `kl`, which
          needs products above 0, zeros are replaced by a millionth of the mean of the data. Past
          the rank of the data components are random.
        - "nndsvda": The same with zeros replaced by the mean of the data.
        - "random": Absolute values of normal deviates, such that products have the mean of the
          data.
    l1 : float, default 0.0
        Strength of the penalty on the entries of both factors, for data divided by the root of its
        mean square (its mean for `kl`). Some 0.001 to 0.1 makes factors sparse. Must be a finite
        number at least 0.
    l2 : float, default 0.0
        Strength of the penalty on half the squares of the entries of both factors, in the same
        unit. Must be a finite number at least 0.
    max_iter : int, default 500
        Largest number of iterations. Must be an integer from 1 to 1000000.
    tol : float, default 1e-05
        Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
        Must be a number at least 0 and at most 1.
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
        The components, components × features, those that contribute most first.
    n_components_
        The number of components.
    reconstruction_err_
        The Frobenius norm of the difference between the data and the product of the factors; of
        `kl`, the root of twice the divergence.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.latent import Nmf
    >>> X = np.random.default_rng(0).exponential(size=(60, 4))
    >>> model = Nmf().fit(X)
    >>> model.transform(X).shape[0]
    60
    """

    _kind = "nmf"

    def __init__(
        self,
        *,
        n_components: int | None = None,
        loss: Literal["frobenius", "kl"] = 'frobenius',
        solver: Literal["auto", "hals", "projected_als", "multiplicative", "newton"] = 'auto',
        init: Literal["nndsvd", "nndsvda", "random"] | Any = 'nndsvda',
        l1: float = 0.0,
        l2: float = 0.0,
        max_iter: int = 500,
        tol: float = 1e-05,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.solver = solver
        self.init = init
        self.l1 = l1
        self.l2 = l2
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.missing = missing
        self.verbose = verbose


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
