"""Models of latent structure.

Written by python/generate.py from the definitions in crates/gradus-latent: change those.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from gradus._autoencoder import Autoencoder
from gradus._latent import PrincipalComponents
from gradus._nmf import NonNegativeFactors

__all__ = [
    "LinearAutoencoder",
    "Nmf",
    "Pca",
]


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
    init : {"nndsvd", "nndsvda", "random"}, default 'nndsvda'
        Where the iterations begin.
        - "nndsvd": The positive parts of singular vectors (NNDSVD), with zeros. For `kl`, which
          needs products above 0, zeros are replaced by a millionth of the mean of the data. Past
          the rank of the data components are random.
        - "nndsvda": The same with zeros replaced by the mean of the data.
        - "random": Absolute values of normal deviates, such that products have the mean of the
          data.
    absent : {"zero", "missing"}, default 'zero'
        What entries are that sparse features do not store.
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
        init: Literal["nndsvd", "nndsvda", "random"] = 'nndsvda',
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
