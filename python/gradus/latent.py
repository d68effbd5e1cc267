"""Models of latent structure.

Written by python/generate.py from the definitions in crates/gradus-latent: change those.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gradus._autoencoder import Autoencoder
from gradus._clusters import CentreClusterer
from gradus._latent import PrincipalComponents
from gradus._mixture import MixtureClusterer
from gradus._nmf import NonNegativeFactors
from gradus._topics import OnlineTopics, TopicModel

__all__ = [
    "GaussianMixture",
    "KMeans",
    "Lda",
    "LinearAutoencoder",
    "Nmf",
    "Pca",
    "Plsa",
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
        Number of clusters. Left out, the number from 2 to 64 with the highest mean silhouette,
        tried on 2,000 samples at most; `gradus select` compares further criteria. Must be an
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
        out, it is where one feature has more than 90 % of the variance, or a third of the features
        at most have 99 %, as with features in unlike units; never for sparse features.
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
        - "refuse": None: a missing value is refused.
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
    Components are ordered by how much they contribute to the data.

    With `absent = missing` the loss is a sum over the entries that sparse features store (in Rust `known` makes such features
    of dense ones with `NaN`; Python takes `NaN` for missing), or over all entries with weights (Rust: `Nmf::fit_weighted`, Python:
    `entry_weight`), and the penalty of a row grows with the weight of its entries; an iteration then costs `2 n k²`. New samples are fitted by the entries they have, and their inverse completes them.

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
        The loss that is minimised.
        - "frobenius": Half the sum of the squared errors: errors alike in size everywhere.
        - "kl": The Kullback–Leibler divergence `Σ x ln(x / y) − x + y`: for counts, whose errors
          grow with their size. Its cost grows with the entries that are not 0.
    solver : {"auto", "hals", "projected_als", "multiplicative", "newton"}, default 'auto'
        The solver.
        - "auto": `hals` for `frobenius`, `newton` for `kl`.
        - "hals": Hierarchical alternating least squares, which is coordinate descent: one entry of
          a row at a time, eight sweeps for each product with the data. For `frobenius`.
        - "projected_als": Alternating least squares with what is negative set to 0, row by row; a
          row that this does not improve takes a sweep of `hals` instead. For `frobenius`.
        - "multiplicative": The multiplicative updates of Lee and Seung: slow, and an entry that is
          0 stays 0. For both losses.
        - "newton": A Newton step for each row of a factor in its entries that are not stored at 0,
          the quadratic model minimised over non-negative rows by coordinate descent, with a line
          search. For `kl`.
    init : {"nndsvd", "nndsvda", "random"} or array, clusters × features, default 'nndsvda'
        The start of the iterations.
        - "nndsvd": The positive parts of singular vectors (NNDSVD), with zeros. For `kl`, which
          needs products above 0, zeros are replaced by a millionth of the mean of the data. Past
          the rank of the data components are random.
        - "nndsvda": The same with zeros replaced by the mean of the data.
        - "random": Absolute values of normal deviates, such that products have the mean of the
          data.
    absent : {"zero", "missing"}, default 'zero'
        The meaning of entries that sparse features do not store.
        - "zero": 0, as usual.
        - "missing": Not known: only the entries that are stored count, zeros among them included.
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
        - "refuse": None: a missing value is refused.
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
        absent: Literal["zero", "missing"] = 'zero',
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
        self.absent = absent
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
        - "auto": The solver is chosen by the shape of the data: `svd` for little data, `covariance`
          for up to 1000 features (or samples), `randomized` beyond that and for sparse data with
          more than 300 features.
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
        - "refuse": None: a missing value is refused.
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


class LinearAutoencoder(Autoencoder):
    """Linear autoencoder: a code of few numbers from which the features come back best, learned by gradient.

    The encoder `W` makes `z = W (x − μ)` of a sample, the decoder `V` makes `V z + μ` of that, and the fit minimises

    `½ E‖(x − μ) − V W (x − μ)‖²`

    over both matrices by the gradients `∇_V = E[(V W − I) x xᵀ Wᵀ]` and `∇_W = E[Vᵀ (V W − I) x xᵀ]`. The least is
    reached exactly where `V` spans the space of the first principal components (Baldi and Hornik, 1989): every other
    point without gradient is a saddle. So the fit is compared with `pca`, which has a closed form: the trace
    holds the principal angles between the column space of `V` and those components after every iteration, in degrees,
    and the certificate is the excess of the error over theirs, as a share of the variance. The codes themselves are not
    the principal components but a mixture of them, since `V M⁻¹` and `M W` are as good as `V` and `W`.

    The start is an orthonormal `V` at random with `W = Vᵀ`. After the last step `W` becomes `(VᵀV)⁻¹ Vᵀ`, which is the
    best encoder of `V`, so that decoding and encoding a code gives the code. Samples are scaled so that the largest
    variance is 1, which makes steps and tolerance independent of the unit. Features in units of their own are best brought
    to one scale first, as for `pca`.

    A sample of weight 3 is three samples; with `batch_size` in expectation only. Cost of a gradient, and of a product with the Hessian: `8 k D²` operations through the covariance matrix of up to
    1000 features `D`, else `8 k` for each entry of the data. To see what gradients do; for results `pca` is exact
    and faster.

    References: Bourlard, Kamp: Auto-association by multilayer perceptrons and singular value decomposition, 1988. Baldi,
    Hornik: Neural networks and principal component analysis, 1989.

    Parameters
    ----------
    n_components : int or None, default None
        Number of components: the length of a code. Left out, as many as `pca` chooses by the log-
        likelihood of held-out samples. Must be an integer from 1 to 100000, or left out.
    optimizer : {"newton", "lbfgs", "gd", "momentum", "nesterov", "adam"}, default 'newton'
        How the gradient becomes a step.
        - "newton": Truncated Newton: conjugate gradients on products with the Hessian, in a trust
          region. Nothing to choose, some dozens of iterations, and it converges however unlike the
          variances are.
        - "lbfgs": L-BFGS with a line search: nothing to choose; thousands of iterations where
          variances are unlike.
        - "gd": Steepest descent.
        - "momentum": The heavy ball, with a momentum of 0.9.
        - "nesterov": Nesterov's method, with a momentum that grows.
        - "adam": Adam, its rate falling to 0 along a cosine.
    learning_rate : float or None, default None
        Length of the first step, for samples scaled so that the largest variance is 1; not for
        `newton` and `lbfgs`. Left out, 0.25 for `gd` and `momentum`, 0.1 for `nesterov` (less for
        small batches), and 0.2 / √features for `adam`. Must be a number at least 0.000000000001 and
        at most 1000000, or left out.
    batch_size : int or None, default None
        Samples in a batch; an iteration then goes over all samples once in random order, and the
        rate falls to 0 along a cosine. Not for `newton` and `lbfgs`. Left out, each step follows
        the gradient over all samples. Must be an integer from 1 to 1000000000, or left out.
    max_iter : int, default 1000
        Largest number of iterations. Must be an integer from 1 to 1000000.
    tol : float, default 1e-06
        Stop when the norm of the gradient is at most this share of the smallest variance to be
        found; 0 turns this off. Must be a number at least 0 and at most 1.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    missing : {"refuse", "mean", "median", "category"}, default 'refuse'
        What stands for a missing value (NaN, None) in the features.
        - "refuse": None: a missing value is refused.
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
    encoder_
        The matrix W that makes a code of a centred sample, components × features.
    decoder_
        The matrix V that makes a centred sample of a code, features × components.
    mean_
        The mean of the features.
    angles_
        The angles between the space of the decoder and the first principal components, in degrees,
        the largest first.
    n_components_
        The number of components.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.latent import LinearAutoencoder
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> model = LinearAutoencoder().fit(X)
    >>> model.transform(X).shape[0]
    60
    """

    _kind = "linearautoencoder"

    def __init__(
        self,
        *,
        n_components: int | None = None,
        optimizer: Literal["newton", "lbfgs", "gd", "momentum", "nesterov", "adam"] = 'newton',
        learning_rate: float | None = None,
        batch_size: int | None = None,
        max_iter: int = 1000,
        tol: float = 1e-06,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.missing = missing
        self.verbose = verbose


class GaussianMixture(MixtureClusterer):
    """A Gaussian mixture: clusters as ellipsoids, with the probability of every sample.

    The density is `p(x) = Σ_k π_k N(x; μ_k, Σ_k)`. Expectation gives `r_nk`, how probable component `k` is for sample
    `n`; maximisation sets `π_k`, `μ_k` and `Σ_k` to the weighted moments. The mean log-likelihood `Σ w ln p(x) / Σ w` never
    falls: every iteration checks that, and a fall beyond rounding ends the fit and is reported. Everything is computed in
    logarithms and from differences `x − μ`, so that clusters far from the origin keep their digits.

    A component that shrinks to a point would have an infinite likelihood. So the variance of every component is at least
    `reg_covar` times the variance within the clusters of the k-means start, in every direction; eigenvalues below that are
    set to it, which is the maximum of the likelihood under this constraint. The report says which components are held. Of
    features that were recorded in steps, such as codes and counts, the variance is also at least that of rounding to a step,
    `step² / 12`: a component of one code alone would have none. A
    fit in other units of the features gives the same mixture in these units, but for `spherical` and `unit`, which compare
    features with each other.

    Missing entries (NaN) need no imputation: a sample counts by the features that it has, and maximisation takes the moments
    of the others that are expected given them. This assumes that entries are missing at random. A sample of weight 3 is
    three samples.

    The problem is not convex: another start may end elsewhere, and `n_init` starts keep the best. Cost of an iteration:
    `2 N k D²` operations for matrices, `6 N k D` for diagonals; for each pattern of missing entries `k D³` more. Sparse
    features are made dense. With more features than samples in a cluster prefer `tied`, `diag` or `spherical`.

    References: Dempster, Laird, Rubin: Maximum likelihood from incomplete data via the EM algorithm, 1977. Ghahramani,
    Jordan: Supervised learning from incomplete data via an EM approach, 1994. Ingrassia, Rocci: Constrained monotone EM
    algorithms for finite mixture of multivariate Gaussians, 2007.

    Parameters
    ----------
    n_components : int or None, default None
        Number of components. Left out, the number with the lowest BIC is taken, from 1 upwards
        until three in a row are no better. Must be an integer from 1 to 100000, or left out.
    covariance_type : {"full", "tied", "diag", "spherical", "unit"}, default 'full'
        The structure of the covariances.
        - "full": A matrix for each component: ellipsoids of any shape and direction.
        - "tied": One matrix for all components.
        - "diag": A variance for each component and feature: ellipsoids along the axes.
        - "spherical": A variance for each component: spheres of different sizes.
        - "unit": Variance 1 for all, in the units of the data: means and weights alone are learned.
    reg_covar : float, default 1e-06
        Smallest variance of a component in any direction, as a share of the variance within the
        clusters of the k-means start, feature by feature. So it means the same in any unit. Must be
        a number at least 0 and at most 1.
    n_init : int, default 1
        Number of k-means starts; the mixture with the highest likelihood is kept. Must be an
        integer from 1 to 10000.
    max_components : int, default 20
        Largest number of components tried where `n_components` is left out. Must be an integer from
        1 to 1000.
    max_iter : int, default 300
        Largest number of iterations of each start. Must be an integer from 1 to 1000000.
    tol : float, default 0.0001
        Stop when an iteration raises the mean log-likelihood of a sample by less than this; 0 turns
        this off. Must be a finite number at least 0.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    missing : {"refuse", "mean", "median", "category", "keep"}, default 'keep'
        What stands for a missing value (NaN, None) in the features.
        - "refuse": None: a missing value is refused.
        - "mean": The mean of a number, the most frequent word of a category.
        - "median": The median of a number, the most frequent word of a category.
        - "category": A category of its own: of words a level, of numbers the mean and a second
          feature that is 1 where the value is missing. In columns where training has no missing
          value, the mean and the encoding of an unseen word.
        - "keep": None: a number stays missing (NaN), for models that take missing entries. A
          missing word has the encoding of an unseen word.
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
    weights_
        The share of each component.
    means_
        The means, components × features.
    covariances_
        The covariances: components × features × features (`full`), features × features (`tied`),
        components × features (`diag`), components (`spherical`), one number (`unit`).
    precisions_cholesky_
        `P` with `P Pᵀ` the inverse of a covariance, in the same shapes, as scikit-learn has it.
    n_components_
        The number of components.
    lower_bound_
        The mean log-likelihood of a training sample.
    converged_
        Whether the fit converged within its tolerance.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.latent import GaussianMixture
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = GaussianMixture().fit(X)
    >>> np.array_equal(model.predict(X), model.labels_)
    True
    """

    _kind = "gmm"

    def __init__(
        self,
        *,
        n_components: int | None = None,
        covariance_type: Literal["full", "tied", "diag", "spherical", "unit"] = 'full',
        reg_covar: float = 1e-06,
        n_init: int = 1,
        max_components: int = 20,
        max_iter: int = 300,
        tol: float = 0.0001,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        missing: Literal["refuse", "mean", "median", "category", "keep"] = 'keep',
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.n_init = n_init
        self.max_components = max_components
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.missing = missing
        self.verbose = verbose


class Lda(OnlineTopics):
    """Latent Dirichlet allocation: documents as mixtures of topics, topics as distributions over words.

    A document draws its mixture `θ ~ Dirichlet(α)`; each of its words draws a topic from `θ` and a word from the
    distribution `φ_k ~ Dirichlet(β)` of the topic. By default, the topics of all words are drawn from their posterior by collapsed
    Gibbs sampling, word by word, in blocks that run in parallel to the same bits on any number of threads. The cost of a
    sweep is the number of words times the number of topics in their documents, not of all topics. Every ten sweeps `α`
    (one number for each topic) and `β` (one for all words) are set to their best values, unless they are given. The topics
    are averages over the last quarter of the sweeps; of several chains (`restarts`) the most likely is kept. The objective
    in the report is `−ln p(words, topics)` for each word; chains fluctuate, and it may rise.

    `algorithm` = `variational` maximises a bound on the likelihood over factorised posteriors instead, all documents in
    each step; `online` takes steps by batches of documents, and `OnlineLda` fits it to a stream that is not kept in memory. Their
    objective is the negative bound for each word. Cost of an iteration: some tens of times the different words of documents
    times the number of topics.

    The mixture of an unseen document is the mode of its posterior given the topics. Words that training did not have are left
    out; a document without known words gets the mean of the prior. Held-out data is scored by the perplexity of the
    second half of each document given the first.

    References: Blei, Ng, Jordan: Latent Dirichlet allocation, 2003. Griffiths, Steyvers: Finding scientific topics, 2004.
    Wallach, Mimno, McCallum: Rethinking LDA: why priors matter, 2009. Hoffman, Blei, Bach: Online learning for latent
    Dirichlet allocation, 2010.

    Parameters
    ----------
    n_topics : int, default 20
        Number of topics; a topic of a word is a number of 16 bits. Must be an integer from 1 to
        65535.
    algorithm : {"gibbs", "variational", "online"}, default 'gibbs'
        How topics are learned.
        - "gibbs": Collapsed Gibbs sampling: the best topics.
        - "variational": Variational Bayes, all documents in each step; its bound never falls while
          the priors stay.
        - "online": Online variational Bayes, a batch of documents in each step: few passes over
          many documents.
    alpha : float or None, default None
        Prior of each topic in a document. Left out, one for each topic, optimised: frequent topics
        get larger ones. Must be a number at least 0.00001 and at most 1000000, or left out.
    beta : float or None, default None
        Prior of each word in a topic. Left out, optimised. Must be a number at least 0.00001 and at
        most 1000000, or left out.
    max_iter : int or None, default None
        Number of sweeps over all words, of steps with all documents (`variational`), or of passes
        over them (`online`). Left out, 200, 50 and 5. Must be an integer from 1 to 1000000, or left
        out.
    batch_size : int, default 1024
        Documents of a batch, of `online`. Must be an integer of at least 1.
    restarts : int, default 1
        Number of chains; the most likely one is kept. Must be an integer from 1 to 1000.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    lowercase : bool, default True
        Whether text is put in lower case first.
    stop_words : list[str] or str, set or None, default ('english',)
        Words to leave out. `english` alone stands for a built-in list of English function words,
        and `@FILE` for the words of a file. Must be a list of words.
    max_ngram : int, default 1
        Terms have at most this many words: 2 for words and pairs of words. Must be an integer from
        1 to 20.
    min_df : float or None, default None
        Leave out terms in fewer documents: a share of the documents if it is below 1, else a number
        of documents. Left out, 2 of 100 documents or more, else 1. Must be a finite number at least
        0, or left out.
    max_df : float or None, default None
        Leave out terms in more documents: a share of the documents if it is at most 1, else a
        number of documents. Left out, half of 100 documents or more, else all. Must be a finite
        number at least 0, or left out.
    max_features : int or None, default None
        Keep this many terms, those that occur most often. Must be an integer of at least 1, or left
        out.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    components_
        Expected counts of words in topics, topics × words, plus the prior; rows in proportion to
        p(word | topic).
    topics_
        The probability of each word in each topic, topics × words.
    shares_
        The share of each topic of the words of training, largest first.
    coherence_
        The NPMI of the ten top words of each topic in the documents of training.
    alpha_
        The prior of each topic in a document; zeros of `Plsa`.
    beta_
        The prior of each word in a topic; 0 of `Plsa`.
    n_features_in_
        The number of words.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.latent import Lda
    >>> texts = ["cat dog cat", "dog cat dog", "sun moon sun", "moon sun moon"]
    >>> model = Lda(n_topics=2)
    >>> model.fit_transform(texts).shape
    (4, 2)
    >>> sorted(len(words) for words in model.top_words(2))
    [2, 2]
    """

    _kind = "lda"

    def __init__(
        self,
        *,
        n_topics: int = 20,
        algorithm: Literal["gibbs", "variational", "online"] = 'gibbs',
        alpha: float | None = None,
        beta: float | None = None,
        max_iter: int | None = None,
        batch_size: int = 1024,
        restarts: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        lowercase: bool = True,
        stop_words: list[str] | tuple[str, ...] | str | set[str] | None = ('english',),
        max_ngram: int = 1,
        min_df: float | None = None,
        max_df: float | None = None,
        max_features: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_topics = n_topics
        self.algorithm = algorithm
        self.alpha = alpha
        self.beta = beta
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.restarts = restarts
        self.random_state = random_state
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.max_ngram = max_ngram
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.verbose = verbose


class Plsa(TopicModel):
    """Probabilistic latent semantic analysis: documents as mixtures of topics, without priors.

    The probability of word `w` in document `d` is `Σ_k p(k | d) p(w | k)`. Expectation maximisation on the counts of
    words maximises the likelihood of the documents of training over both factors; the objective in the report is the negative
    log likelihood of a word, which never rises (with `temperature` 1). There are as many parameters as documents have topics, so
    it overfits where documents are few or short: `lda` is the safer choice. `temperature` below 1 counts against that:
    the posterior of topics in the E-step is raised to this power.

    The mixture of an unseen document maximises its likelihood given the topics. Words that training did not have are
    left out; a document without known words gets the shares of the topics. Cost of an iteration: `8 n K` operations for
    `n` different words of documents and `K` topics. Held-out data is scored by the perplexity of the second half of
    each document given the first; the best iterate is kept.

    Reference: Hofmann: Probabilistic latent semantic indexing, 1999.

    Parameters
    ----------
    n_topics : int, default 20
        Number of topics. Must be an integer from 1 to 65535.
    temperature : float, default 1.0
        Power of the posterior of topics in the E-step; 1 is plain expectation maximisation, 0.6 to
        0.95 overfits less. Must be a number at least 0.01 and at most 1.
    max_iter : int, default 200
        Largest number of iterations of each start. Must be an integer from 1 to 1000000.
    tol : float, default 1e-05
        A start ends when the objective falls by less than this share of itself; 0 turns this off.
        Must be a number at least 0 and at most 1.
    restarts : int, default 1
        Number of random starts; the best is kept. Must be an integer from 1 to 1000.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    lowercase : bool, default True
        Whether text is put in lower case first.
    stop_words : list[str] or str, set or None, default ('english',)
        Words to leave out. `english` alone stands for a built-in list of English function words,
        and `@FILE` for the words of a file. Must be a list of words.
    max_ngram : int, default 1
        Terms have at most this many words: 2 for words and pairs of words. Must be an integer from
        1 to 20.
    min_df : float or None, default None
        Leave out terms in fewer documents: a share of the documents if it is below 1, else a number
        of documents. Left out, 2 of 100 documents or more, else 1. Must be a finite number at least
        0, or left out.
    max_df : float or None, default None
        Leave out terms in more documents: a share of the documents if it is at most 1, else a
        number of documents. Left out, half of 100 documents or more, else all. Must be a finite
        number at least 0, or left out.
    max_features : int or None, default None
        Keep this many terms, those that occur most often. Must be an integer of at least 1, or left
        out.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    components_
        Expected counts of words in topics, topics × words, plus the prior; rows in proportion to
        p(word | topic).
    topics_
        The probability of each word in each topic, topics × words.
    shares_
        The share of each topic of the words of training, largest first.
    coherence_
        The NPMI of the ten top words of each topic in the documents of training.
    alpha_
        The prior of each topic in a document; zeros of `Plsa`.
    beta_
        The prior of each word in a topic; 0 of `Plsa`.
    n_features_in_
        The number of words.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.latent import Plsa
    >>> texts = ["cat dog cat", "dog cat dog", "sun moon sun", "moon sun moon"]
    >>> model = Plsa(n_topics=2)
    >>> model.fit_transform(texts).shape
    (4, 2)
    >>> sorted(len(words) for words in model.top_words(2))
    [2, 2]
    """

    _kind = "plsa"

    def __init__(
        self,
        *,
        n_topics: int = 20,
        temperature: float = 1.0,
        max_iter: int = 200,
        tol: float = 1e-05,
        restarts: int = 1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        lowercase: bool = True,
        stop_words: list[str] | tuple[str, ...] | str | set[str] | None = ('english',),
        max_ngram: int = 1,
        min_df: float | None = None,
        max_df: float | None = None,
        max_features: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_topics = n_topics
        self.temperature = temperature
        self.max_iter = max_iter
        self.tol = tol
        self.restarts = restarts
        self.random_state = random_state
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.max_ngram = max_ngram
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.verbose = verbose
