"""Recommenders and matrix factorisation.

Written by python/generate.py from the definitions in crates/gradus-factor: change those.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from gradus._ratings import Recommender

__all__ = [
    "Als",
    "Bayes",
    "Bias",
    "Bpr",
    "Ccd",
    "Ease",
    "Gd",
    "Ials",
    "Mean",
    "Neighbours",
    "NmfRatings",
    "Popular",
    "PureSvd",
    "Sgd",
    "Slim",
    "SoftImpute",
    "Spectral",
    "Svdpp",
    "Svp",
    "Svt",
]


class Als(Recommender):
    """Biased matrix factorisation by alternating least squares: predicts ratings, recommends items.

    The model is `r̂ = α + β_u + β_i + γ_u·γ_i`: a mean, a bias for each user and each item, and a
    vector of `rank` factors for each. The fit minimises

    `Σ w (r − r̂)² + λσ Σ_u s_u ‖γ_u‖² + λσ Σ_i s_i ‖γ_i‖² + d_u Σ_u β_u² + d_i Σ_i β_i²`

    over the ratings that are there, where `s` is the root of the number of ratings of the row (`scaling =
    sqrt`), that number (`count`) or 1 (`none`). The mean α is not penalised.

    `σ` is the standard deviation of the noise about the biases, and `d_u`, `d_i` are the penalties on
    biases; both are estimated from the data (see `bias`), so that the result does not depend on the scale of the
    ratings. Where λ or the rank is left out, it is chosen by the error on held-out ratings, and the report
    says what was tried. Where ratings are too thin for factors, that makes them 0 and the model `bias`.

    With features of users or items (side information) the prior mean of a row is a linear map of its features,
    `λσ s_u ‖γ_u − Wᵀx_u‖²` in place of `λσ s_u ‖γ_u‖²` and likewise for biases, and the maps are learned together with the rows under
    a penalty of their own, chosen for each column of features. Users and items without ratings are then
    known by their features.

    One iteration sets α to its optimum, then solves every item's bias and factors jointly and
    exactly with the users held fixed, then every user's with the items held fixed; so the
    objective never rises. Rows are solved in parallel and in single precision; a row whose system
    is too ill-conditioned for that is redone in double precision. The result does not depend on
    the number of threads.

    Cost of an iteration: `2 n rank²` operations for `n` ratings and `rank³/3` for each user and
    item; with `solver = cg` `8 n rank` and as much again for each of the `cg_steps`. Conjugate
    gradients improve each row instead of solving it, from where the last iteration left it; the
    objective still never rises, and three steps lower it almost as far as an exact solve does. From
    a rank of about 64 on that is the faster way.

    Where people choose what they rate, `svdpp` makes use of that and is more accurate, at two to
    three times the cost. Use another model for clicks, plays or purchases, where what is *not*
    there also means something. For pure ranking quality at the same speed that other model is better, too.

    Reference: Zhou, Wilkinson, Schreiber, Pan: Large-scale parallel collaborative filtering for
    the Netflix Prize, 2008 (with the count-scaled penalty).

    Parameters
    ----------
    rank : int or None, default None
        Number of latent factors of each user and item. Left out, it is chosen on held-out ratings:
        16, or more or fewer where that pays. With a penalty of the right strength more factors
        hardly overfit. Must be an integer from 1 to 4096, or left out.
    regularization : float or None, default None
        Strength λ of the penalty on factors, in units of the standard deviation of the ratings
        about the biases: one value means the same on any scale. Left out, it is chosen on held-out
        ratings; with `scaling = sqrt` the best is between 1 and 2 on almost all data. Must be a
        finite number at least 0, or left out.
    bias_regularization : float or None, default None
        Strength of the penalty on biases: the number of ratings at the mean that every user and
        item has in addition. Left out, it is estimated from the data, for each side, as by `bias`.
        Must be a finite number at least 0, or left out.
    feature_regularization : float or None, default None
        Strength of the penalty on the maps from features to biases and factors (with features of
        users or items): the number of rows at the mean that each feature has in addition. Left out,
        it is estimated from the data for each column of features, and a column that says nothing is
        left out. Must be a finite number at least 0, or left out.
    scaling : {"count", "sqrt", None}, default 'sqrt'
        How the penalty of a row grows with its number of ratings. The root beats the two others on
        thin and dense ratings alike: a row with few ratings needs more than its count of penalty.
        - "count": λ times the number of the row's ratings (the sum of their weights): the choice of
          the literature.
        - "sqrt": λ times the root of that number: between the two others, and better than both on
          most data.
        - None: λ for every row alike: rows with many ratings are fitted more closely.
    biases : bool, default True
        Whether users and items have biases.
    normalize : {"user", "item", "both", None}, default None
        Whether ratings are brought to a common mean and spread before the fit (and back on
        prediction). With biases there is little left for it to do; it is for people who use the
        scale very differently, and for models without biases.
        - None: No normalisation: ratings are fitted as they are.
        - "user": Each user's mean and standard deviation.
        - "item": Each item's mean and standard deviation.
        - "both": The mean and standard deviation of each user, then those of each item in the
          residuals.
    solver : {"cholesky", "cg"}, default 'cholesky'
        How a row is solved while the other side is held fixed.
        - "cholesky": Exactly, by a Cholesky factor of its normal equations: users folded in get
          their very factors.
        - "cg": A few conjugate gradient steps from the last solution: cheaper from a rank of about
          64 on.
    cg_steps : int, default 3
        Conjugate gradient steps for each row in an iteration (`solver = cg`). Must be an integer
        from 1 to 1000.
    max_iter : int, default 20
        Largest number of iterations (for each random start). The error hardly falls after 20. Must
        be an integer from 1 to 1000000.
    tol : float, default 0.0001
        Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
        Must be a number at least 0 and at most 1.
    patience : int, default 3
        The number of iterations without a better error on held-out ratings after which the fit
        stops; 0 turns this off. Must be an integer from 0 to 1000000.
    restarts : int, default 1
        Number of random starts; the best is kept, by held-out score if there is one, else by
        objective. Must be an integer from 1 to 1000.
    clip : bool, default True
        Whether predictions are clipped to the range of the training ratings.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has seen and to explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Als
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Als(rank=4).fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "als"
    _updates = True

    def __init__(
        self,
        *,
        rank: int | None = None,
        regularization: float | None = None,
        bias_regularization: float | None = None,
        feature_regularization: float | None = None,
        scaling: Literal["count", "sqrt"] | None = 'sqrt',
        biases: bool = True,
        normalize: Literal["user", "item", "both"] | None = None,
        solver: Literal["cholesky", "cg"] = 'cholesky',
        cg_steps: int = 3,
        max_iter: int = 20,
        tol: float = 0.0001,
        patience: int = 3,
        restarts: int = 1,
        clip: bool = True,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.regularization = regularization
        self.bias_regularization = bias_regularization
        self.feature_regularization = feature_regularization
        self.scaling = scaling
        self.biases = biases
        self.normalize = normalize
        self.solver = solver
        self.cg_steps = cg_steps
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.restarts = restarts
        self.clip = clip
        self.keep_history = keep_history
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose


class Svdpp(Recommender):
    """SVD++: predicts ratings from ratings and from who rated what, by alternating least squares.

    That someone rated a film at all says something about them, whatever the rating was. Each item `j`
    has implicit factors `y_j` with a bias `c_j`, and a user receives those of the items `N(u)` that
    the user rated: `z_u = |N(u)|^-½ Σ_{j ∈ N(u)} y_j`. With `item_side`, users have implicit factors
    `x_u` too, and an item receives those of the users who rated it. The model is

    `r̂ = α + β_u + β_i + (p_u + z_u)·(q_i + z_i)`

    where the biases include what is received of `c`, and the fit minimises

    `Σ w (r − r̂)² + λσ Σ_u s_u ‖p_u‖² + λσ Σ_i s_i ‖q_i‖² + λ_y σ Σ_j s_j ‖y_j‖² + λ_y σ Σ_u s_u ‖x_u‖²`

    over the ratings that are there, `s` being the number of ratings of the row (`scaling = count`), its
    root (`sqrt`) or 1 (`none`), σ the standard deviation of the noise about the biases, and `λ_y` the
    multiple `implicit_regularization` of λ. The biases of a row's own are penalised as by `bias`, those that
    are received by `λ_y s c²`. α is not penalised. A rating counts once in `N`, whatever its weight, and not at all if its weight is 0.

    One iteration sets α to its optimum; takes `implicit_steps` steps of conjugate gradients for the
    users' implicit factors, then solves every item exactly; takes as many for the items' implicit
    factors, then solves every user exactly. Each lowers the objective, so it never rises. The
    result does not depend on the number of threads.

    Cost of an iteration: that of `als`, `2 n rank²` operations for `n` ratings and `rank³/3` for
    each user and item, and about `16 n rank` for each step of conjugate gradients.

    The fitted model is used like that of `als` at the same cost. It is more accurate where people
    choose what they rate, as they do with films; where others decide what they rate, as in a survey,
    the implicit factors have nothing to add and `als` is simpler. For clicks, plays or purchases,
    where nothing but the choice is known, use another model.

    Reference: Koren: Factorization meets the neighborhood, 2008 (the model; there fitted by
    stochastic gradients).

    Parameters
    ----------
    rank : int or None, default None
        Number of latent factors of each user and item. Left out, it is chosen on held-out ratings,
        as by `als`. Must be an integer from 1 to 4096, or left out.
    regularization : float or None, default None
        Strength λ of the penalty on factors, in units of the standard deviation of the ratings
        about the biases. Left out, it is chosen on held-out ratings, as by `als`. Must be a finite
        number at least 0, or left out.
    bias_regularization : float or None, default None
        Strength of the penalty on biases: the number of ratings at the mean that every user and
        item has in addition. Left out, it is estimated from the data, for each side, as by `bias`.
        Must be a finite number at least 0, or left out.
    implicit_regularization : float, default 3.0
        Strength of the penalty on the implicit factors, as a multiple of `regularization`. Many
        rows share them, so they need a stronger penalty than a row's own factors. Must be a finite
        number at least 0.
    scaling : {"count", "sqrt", None}, default 'sqrt'
        The growth of the penalties of a row with its number of ratings.
        - "count": λ times the number of the row's ratings (the sum of their weights): the choice of
          the literature.
        - "sqrt": λ times the root of that number: between the two others, and better than both on
          most data.
        - None: λ for every row alike: rows with many ratings are fitted more closely.
    item_side : bool, default True
        Whether items receive implicit factors of the users who rated them, as users do of items.
        Without it the model is Koren's; with it the error is clearly lower, at twice the steps of
        conjugate gradients.
    biases : bool, default True
        Whether users and items have biases, and implicit factors a part that adds to the biases.
    normalize : {"user", "item", "both", None}, default None
        Whether ratings are brought to a common mean and spread before the fit (and back on
        prediction).
        - None: No normalisation: ratings are fitted as they are.
        - "user": Each user's mean and standard deviation.
        - "item": Each item's mean and standard deviation.
        - "both": The mean and standard deviation of each user, then those of each item in the
          residuals.
    implicit_steps : int, default 8
        Steps of conjugate gradients that an iteration takes for the implicit factors of each side.
        They go on from where they were, so few are enough; with fewer than 8 the error falls more
        slowly. Must be an integer from 1 to 10000.
    max_iter : int, default 20
        Largest number of iterations (for each random start). The error hardly falls after 20. Must
        be an integer from 1 to 1000000.
    tol : float, default 0.0001
        Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
        Must be a number at least 0 and at most 1.
    patience : int, default 3
        The number of iterations without a better error on held-out ratings after which the fit
        stops; 0 turns this off. Must be an integer from 0 to 1000000.
    restarts : int, default 1
        Number of random starts; the best is kept, by held-out score if there is one, else by
        objective. Must be an integer from 1 to 1000.
    clip : bool, default True
        Whether predictions are clipped to the range of the training ratings.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has seen and to explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Svdpp
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Svdpp(rank=4).fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "svdpp"

    def __init__(
        self,
        *,
        rank: int | None = None,
        regularization: float | None = None,
        bias_regularization: float | None = None,
        implicit_regularization: float = 3.0,
        scaling: Literal["count", "sqrt"] | None = 'sqrt',
        item_side: bool = True,
        biases: bool = True,
        normalize: Literal["user", "item", "both"] | None = None,
        implicit_steps: int = 8,
        max_iter: int = 20,
        tol: float = 0.0001,
        patience: int = 3,
        restarts: int = 1,
        clip: bool = True,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.regularization = regularization
        self.bias_regularization = bias_regularization
        self.implicit_regularization = implicit_regularization
        self.scaling = scaling
        self.item_side = item_side
        self.biases = biases
        self.normalize = normalize
        self.implicit_steps = implicit_steps
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.restarts = restarts
        self.clip = clip
        self.keep_history = keep_history
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose


class Bayes(Recommender):
    """Bayesian matrix factorisation by Gibbs sampling: the best predictions of ratings, each with an interval.

    The model is `r = α + b_u + b_i + p_u·q_i + ε` with noise `ε ~ N(0, 1/τ)`. A rating of weight `w`
    counts as `w` equal ratings: its likelihood is taken to the power `w`, in the rows and in `τ`
    alike. A user's `(p_u, b_u)` comes from a Gaussian `N(μ, Λ⁻¹)` over `rank + 1` dimensions,
    an item's `(q_i, b_i)` from another, and both Gaussians have a Normal–Wishart prior; so there is
    no penalty to tune, and more factors do not overfit. The prior expects biases of the variances that
    `bias` estimates and small factors, and weighs three tenths of the rows: where ratings are too thin to tell
    users apart, factors stay small and predictions are near those of `bias`. With `implicit_side` the mean of a user's
    Gaussian is `μ + |N(u)|^-½ Σ_{j ∈ N(u)} y_j` over the items `N(u)` that the user rated: what
    a user chose to rate says something about the user, whatever the rating. Items gain from their users in
    the same way.

    With features of users or items (side information) the mean of a row's Gaussian is `μ + Wᵀ(x − x̄)` besides, and the link
    matrix `W` is drawn with the rest; its strength has a prior of its own for each column of features, and a column
    that says nothing is left out. Users and items without ratings are then known by their features.

    A user or item without ratings is at the row that all ratings together would give (in each draw, given the other side), and what its
    features add: not at `μ`, which with `implicit_side` is far from all rows that have a list.

    One iteration draws, each given all the rest: both Gaussians, the `y`, `W`, every item, every user,
    and the noise `τ`. The result is not one set of factors but many: a prediction is the mean over the
    draws kept (with each draw of the items, every user at their mean given it), and their spread with
    the noise gives an interval (`gradus predict --interval 0.9`). α is the mean of
    the ratings; the difference of the level of all ratings from it is drawn with the means of the biases.
    Ratings are standardised inside, so their scale does not matter. The objective in the report is
    the training RMSE of the last draw, which does not fall for ever but settles at the noise; the
    held-out score is that of the model as it would be kept now (in the burn-in: of the last draw).
    The notes of the report say whether the chain has settled.

    Cost of an iteration: that of an iteration of `als`, and three passes over the ratings for each
    implicit side. The model holds `2.5 · keep_samples · (rank + 1)` bytes for each user and
    `2 · keep_samples · (rank + 1)` for each item, twice that where users gain from their lists: 8 and
    13 KB at the defaults.

    Use `als` where seconds or megabytes matter more than the last percent of error, and another model
    for clicks, plays or purchases.

    References: Salakhutdinov, Mnih: Bayesian probabilistic matrix factorization using Markov chain
    Monte Carlo, 2008; Rendle, Zhang, Koren: On the difficulty of evaluating baselines, 2019 (how
    good it is); Simm and others: Macau, 2017 (rows whose mean depends on features).

    Parameters
    ----------
    rank : int, default 32
        Number of latent factors of each user and item. More do not overfit; 32 is enough for a
        million ratings. Must be an integer from 1 to 1024.
    implicit_side : {"users", "items", "both", None}, default 'both'
        Whether the list of what was rated counts besides the ratings themselves.
        - None: No lists: plain Bayesian matrix factorisation.
        - "users": The list of a user's ratings adds to the user.
        - "items": The list of an item's ratings adds to the item.
        - "both": Both.
    max_iter : int, default 500
        Iterations in all, those of the burn-in included. Must be an integer from 1 to 1000000.
    burn_in : int, default 80
        Iterations before draws count, until the chain has forgotten its start; at most half of
        `max_iter`. Must be an integer from 0 to 1000000.
    keep_samples : int, default 100
        Draws that the model keeps, evenly spread over those that count. More make better means and
        a larger file. Must be an integer from 1 to 65536.
    patience : int, default 0
        The number of iterations without a better error on held-out ratings after which the fit
        stops; 0 turns this off. An average rarely gets worse, so this is of use only to save time.
        Must be an integer from 0 to 1000000.
    clip : bool, default True
        Whether predictions and intervals are clipped to the range of the training ratings.
    keep_history : bool, default True
        Whether the model keeps the training ratings, to leave out what a user has seen and to
        explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Bayes
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Bayes(rank=4).fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "bayes"

    def __init__(
        self,
        *,
        rank: int = 32,
        implicit_side: Literal["users", "items", "both"] | None = 'both',
        max_iter: int = 500,
        burn_in: int = 80,
        keep_samples: int = 100,
        patience: int = 0,
        clip: bool = True,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.implicit_side = implicit_side
        self.max_iter = max_iter
        self.burn_in = burn_in
        self.keep_samples = keep_samples
        self.patience = patience
        self.clip = clip
        self.keep_history = keep_history
        self.random_state = random_state
        self.verbose = verbose


class Sgd(Recommender):
    """Biased matrix factorisation by stochastic gradient descent: predicts ratings, recommends items.

    The model is `r̂ = α + β_u + β_i + γ_u·γ_i`: a mean, a bias for each user and each item, and a
    vector of `rank` factors for each. The fit minimises

    `Σ w ℓ(r, r̂) + λσ Σ_u s_u ‖γ_u‖² + λσ Σ_i s_i ‖γ_i‖² + d_u Σ_u β_u² + d_i Σ_i β_i²`

    over the ratings that are there, with a loss `ℓ` of choice, where `s` is the number of ratings
    of the row (`scaling = count`), its root (`sqrt`) or 1 (`none`). The constant α is the one that fits best
    without the rest, and stays.

    An epoch takes one step for each rating, along half the gradient of its share of the objective:
    `γ_u ← (γ_u + η g γ_i) / (1 + η λ)`, and likewise for `γ_i` and the biases, where `g` is the
    error (for the squared loss) as it will be after the step. Such steps never overshoot, however
    large `learning_rate` is. They are taken on values divided by their standard deviation, so one
    learning rate serves all scales. With several values (`batch`) the rows move together.

    Users and items are assigned at random to groups, and the ratings cut into a grid of blocks; blocks
    that share no user and no item run in parallel. The result does not depend on the number of
    threads. The objective reported for an epoch takes each loss just before its step, so it lags a
    little behind that of the model at the end.

    A new user is folded in, and new ratings are added, by solving the user's row under the same loss.

    Cost of an epoch: `11 n rank` operations for `n` ratings, a small part of an iteration of `als`,
    of which it needs a few times as many. Use `als` where the result should not depend on a
    learning rate, and another model for clicks, plays or purchases.

    References: Gemulla, Nijkamp, Haas, Sismanis: Large-scale matrix factorization with distributed
    stochastic gradient descent, 2011 (the grid); Chin, Zhuang, Juan, Lin: A learning-rate schedule
    for stochastic gradient methods to matrix factorization, 2015 (adaptive steps by row); Toulis,
    Airoldi: Asymptotic and finite-sample properties of estimators based on stochastic gradients,
    2017 (implicit steps).

    Parameters
    ----------
    rank : int or None, default None
        Number of latent factors of each user and item. Left out, it is chosen on held-out ratings,
        as by `als`. Must be an integer from 1 to 4096, or left out.
    regularization : float or None, default None
        Strength λ of the penalty on factors, in units of the standard deviation of the ratings
        about the biases. Left out, it is chosen on held-out ratings, as by `als`. Must be a finite
        number at least 0, or left out.
    bias_regularization : float or None, default None
        Strength of the penalty on biases: the number of ratings at the mean that every user and
        item has in addition. Left out, it is estimated from the data, for each side, as by `bias`.
        Must be a finite number at least 0, or left out.
    scaling : {"count", "sqrt", None}, default 'sqrt'
        The growth of the penalty of a row with its number of ratings.
        - "count": λ times the number of the row's ratings (the sum of their weights): the choice of
          the literature.
        - "sqrt": λ times the root of that number: between the two others, and better than both on
          most data.
        - None: λ for every row alike: rows with many ratings are fitted more closely.
    biases : bool, default True
        Whether users and items have biases.
    loss : {"squared", "absolute", "huber", "logistic"}, default 'squared'
        Loss function.
        - "squared": `e²`: predicts the mean.
        - "absolute": `|e|`: predicts the median; outliers count no more than others.
        - "huber": `e²` up to `|e| = delta`, then linear: a compromise of the two.
        - "logistic": Cross-entropy of a probability, for values from 0 to 1 or of two kinds:
          predictions pass through the logistic function.
    delta : float, default 1.0
        The error from which the Huber loss is linear, in units of the standard deviation of the
        ratings about the biases (wild values drawn in). Must be a finite number at least 0.000001.
    learning_rate : float, default 0.05
        Length η of a step, for ratings of standard deviation 1. 0.03 to 0.07 do equally well with
        `schedule = cosine`; 0.1 suits `adaptive`. Must be a finite number at least 0.000000001.
    schedule : {"adaptive", "constant", "cosine"}, default 'cosine'
        How the length of a step changes as the fit goes on.
        - "adaptive": Shorter for each row the more gradient it has seen (`η / √(1 + Σ mean g²)`):
          quick from the first epoch on.
        - "constant": `η` in every epoch.
        - "cosine": `η` at first, then falling along a half cosine, to nothing after `max_iter`
          epochs.
    batch : int, default 1
        Ratings (of one block) whose gradients are gathered before the rows move; 1 is plain SGD.
        Must be an integer from 1 to 1000000.
    max_iter : int, default 30
        Largest number of epochs (for each random start). Must be an integer from 1 to 1000000.
    tol : float, default 0.0
        Stop when an epoch lowers the objective by less than this share of it; 0 turns this off.
        Must be a number at least 0 and at most 1.
    patience : int, default 5
        The number of epochs without a better error on held-out ratings after which the fit stops; 0
        turns this off. Must be an integer from 0 to 1000000.
    restarts : int, default 1
        Number of random starts; the best is kept, by held-out score if there is one, else by
        objective. Must be an integer from 1 to 1000.
    clip : bool, default True
        Whether predictions are clipped to the range of the training ratings.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has seen and to explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Sgd
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Sgd(rank=4).fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "sgd"
    _updates = True

    def __init__(
        self,
        *,
        rank: int | None = None,
        regularization: float | None = None,
        bias_regularization: float | None = None,
        scaling: Literal["count", "sqrt"] | None = 'sqrt',
        biases: bool = True,
        loss: Literal["squared", "absolute", "huber", "logistic"] = 'squared',
        delta: float = 1.0,
        learning_rate: float = 0.05,
        schedule: Literal["adaptive", "constant", "cosine"] = 'cosine',
        batch: int = 1,
        max_iter: int = 30,
        tol: float = 0.0,
        patience: int = 5,
        restarts: int = 1,
        clip: bool = True,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.regularization = regularization
        self.bias_regularization = bias_regularization
        self.scaling = scaling
        self.biases = biases
        self.loss = loss
        self.delta = delta
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.batch = batch
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.restarts = restarts
        self.clip = clip
        self.keep_history = keep_history
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose


class Ccd(Recommender):
    """Biased matrix factorisation by cyclic coordinate descent: one number at a time, each in closed form.

    Model and objective are those of `als`: `r̂ = α + β_u + β_i + γ_u·γ_i` and

    `Σ w (r − r̂)² + λσ Σ_u s_u ‖γ_u‖² + λσ Σ_i s_i ‖γ_i‖² + d_u Σ_u β_u² + d_i Σ_i β_i²`.

    With the errors `e` of the ratings at hand, the best value of one factor is
    `γ_ut ← (Σ w e γ_it + γ_ut Σ w γ_it²) / (λσ s_u + Σ w γ_it²)`, and the errors follow; a bias is one
    more factor whose other side is 1. No update can raise the objective. With `order = element` all
    factors of an item are visited, then those of the next; then the users. With `order = dimension`
    the first factor of all items and of all users is visited `inner` times, then the second. Rows
    are independent of each other and done in parallel; the result does not depend on the number of
    threads.

    Cost of an iteration: `12 n rank` operations for `n` ratings and each inner round. `als` lowers the
    objective further in the same time, at a large rank with `solver = cg`; use it unless you want
    this method.

    References: Pilászy, Zibriczky, Tikk: Fast ALS-based matrix factorization, 2010 (element); Yu,
    Hsieh, Si, Dhillon: Scalable coordinate descent approaches to parallel matrix factorization,
    2012 (dimension).

    Parameters
    ----------
    rank : int or None, default None
        Number of latent factors of each user and item. Left out, it is chosen on held-out ratings,
        as by `als`. Must be an integer from 1 to 4096, or left out.
    regularization : float or None, default None
        Strength λ of the penalty on factors, in units of the standard deviation of the ratings
        about the biases. Left out, it is chosen on held-out ratings, as by `als`. Must be a finite
        number at least 0, or left out.
    bias_regularization : float or None, default None
        Strength of the penalty on biases: the number of ratings at the mean that every user and
        item has in addition. Left out, it is estimated from the data, for each side, as by `bias`.
        Must be a finite number at least 0, or left out.
    scaling : {"count", "sqrt", None}, default 'sqrt'
        The growth of the penalty of a row with its number of ratings.
        - "count": λ times the number of the row's ratings (the sum of their weights): the choice of
          the literature.
        - "sqrt": λ times the root of that number: between the two others, and better than both on
          most data.
        - None: λ for every row alike: rows with many ratings are fitted more closely.
    biases : bool, default True
        Whether users and items have biases.
    order : {"dimension", "element"}, default 'element'
        The order in which the coordinates are visited.
        - "dimension": One latent dimension at a time, over all items and then all users (CCD++): a
          dimension is the best rank-one fit of what the others leave.
        - "element": One row at a time, over all its dimensions: each scalar is minimised in closed
          form, all others fixed.
    inner : int, default 1
        How often the coordinates of a row (or of a dimension) are visited before the next ones.
        Must be an integer from 1 to 1000.
    max_iter : int, default 40
        Largest number of iterations (for each random start). Must be an integer from 1 to 1000000.
    tol : float, default 0.0001
        Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
        Must be a number at least 0 and at most 1.
    patience : int, default 3
        The number of iterations without a better error on held-out ratings after which the fit
        stops; 0 turns this off. Must be an integer from 0 to 1000000.
    restarts : int, default 1
        Number of random starts; the best is kept, by held-out score if there is one, else by
        objective. Must be an integer from 1 to 1000.
    clip : bool, default True
        Whether predictions are clipped to the range of the training ratings.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has seen and to explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Ccd
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Ccd(rank=4).fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "ccd"
    _updates = True

    def __init__(
        self,
        *,
        rank: int | None = None,
        regularization: float | None = None,
        bias_regularization: float | None = None,
        scaling: Literal["count", "sqrt"] | None = 'sqrt',
        biases: bool = True,
        order: Literal["dimension", "element"] = 'element',
        inner: int = 1,
        max_iter: int = 40,
        tol: float = 0.0001,
        patience: int = 3,
        restarts: int = 1,
        clip: bool = True,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.regularization = regularization
        self.bias_regularization = bias_regularization
        self.scaling = scaling
        self.biases = biases
        self.order = order
        self.inner = inner
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.restarts = restarts
        self.clip = clip
        self.keep_history = keep_history
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose


class Gd(Recommender):
    """Biased matrix factorisation by full gradient descent: to see what the other solvers gain.

    The model is `r̂ = α + β_u + β_i + γ_u·γ_i`, and the fit minimises the objective of `als`, or of
    `sgd` with the same loss:

    `Σ w ℓ(r, r̂) + λσ Σ_u s_u ‖γ_u‖² + λσ Σ_i s_i ‖γ_i‖² + d_u Σ_u β_u² + d_i Σ_i β_i²`

    One iteration computes the exact gradient over all ratings and moves everything once. The
    gradient of a row is halved and divided by the number (the weight) of its ratings, or the rows
    with many ratings would force tiny steps on all others. Values are divided by their standard
    deviation meanwhile, so one `learning_rate` serves all scales. `optimizer` chooses how the
    gradient becomes a step.

    Under `gd`, `momentum` and `nesterov` the objective never rises: a step that would raise it is
    halved until it does not (momentum starts again from nothing), and the length grows again when
    all goes well. The others may rise now and then, but are stopped from running away.

    Rows are worked on in parallel; the result does not depend on the number of threads. Cost of an
    iteration: `8 n rank` operations for `n` ratings, and as much memory traffic as two passes.
    It takes hundreds of them where `als` takes twenty and `sgd` some dozens: use those for results.

    References: Nesterov 1983; Duchi, Hazan, Singer 2011 (adagrad); Tieleman, Hinton 2012 (rmsprop);
    Kingma, Ba 2015 (adam); O'Donoghue, Candès 2015 (starting momentum again).

    Parameters
    ----------
    rank : int or None, default None
        Number of latent factors of each user and item. Left out, it is chosen on held-out ratings,
        as by `als`. Must be an integer from 1 to 4096, or left out.
    regularization : float or None, default None
        Strength λ of the penalty on factors, in units of the standard deviation of the ratings
        about the biases. Left out, it is chosen on held-out ratings, as by `als`. Must be a finite
        number at least 0, or left out.
    bias_regularization : float or None, default None
        Strength of the penalty on biases: the number of ratings at the mean that every user and
        item has in addition. Left out, it is estimated from the data, for each side, as by `bias`.
        Must be a finite number at least 0, or left out.
    scaling : {"count", "sqrt", None}, default 'sqrt'
        The growth of the penalty of a row with its number of ratings.
        - "count": λ times the number of the row's ratings (the sum of their weights): the choice of
          the literature.
        - "sqrt": λ times the root of that number: between the two others, and better than both on
          most data.
        - None: λ for every row alike: rows with many ratings are fitted more closely.
    biases : bool, default True
        Whether users and items have biases.
    loss : {"squared", "absolute", "huber", "logistic"}, default 'squared'
        Loss function.
        - "squared": `e²`: predicts the mean.
        - "absolute": `|e|`: predicts the median; outliers count no more than others.
        - "huber": `e²` up to `|e| = delta`, then linear: a compromise of the two.
        - "logistic": Cross-entropy of a probability, for values from 0 to 1 or of two kinds:
          predictions pass through the logistic function.
    delta : float, default 1.0
        The error from which the Huber loss is linear, in units of the standard deviation of the
        ratings about the biases (wild values drawn in). Must be a finite number at least 0.000001.
    optimizer : {"gd", "momentum", "nesterov", "adagrad", "rmsprop", "adam"}, default 'nesterov'
        How the gradient becomes a step.
        - "gd": `x ← x + η d`.
        - "momentum": `v ← μ v + d`, `x ← x + η v`: goes on in the direction it came from.
        - "nesterov": `v ← μ v + d`, `x ← x + η (d + μ v)`: looks at the slope where the momentum
          will take it.
        - "adagrad": `s ← s + d²`, `x ← x + η d / √s`, each coordinate for itself.
        - "rmsprop": `s ← 0.9 s + 0.1 d²`, `x ← x + η d / √s`.
        - "adam": Momentum over RMSprop: `v ← μ v + (1 − μ) d`, `s ← 0.999 s + 0.001 d²`, `x ← x + η
          v / √s`, both corrected for starting at 0.
    learning_rate : float, default 0.0
        Length of a step at first. 0 takes 1 for gd, momentum and nesterov, 0.1 for adagrad, and
        0.02 for rmsprop and adam. Must be a finite number at least 0.
    momentum : float, default 0.9
        Share of the last move that goes on, for momentum, nesterov and adam. Must be a number at
        least 0 and at most 0.9999.
    max_iter : int, default 200
        Largest number of iterations (for each random start). Must be an integer from 1 to 1000000.
    tol : float, default 1e-05
        Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
        Must be a number at least 0 and at most 1.
    patience : int, default 10
        The number of iterations without a better error on held-out ratings after which the fit
        stops; 0 turns this off. Must be an integer from 0 to 1000000.
    restarts : int, default 1
        Number of random starts; the best is kept, by held-out score if there is one, else by
        objective. Must be an integer from 1 to 1000.
    clip : bool, default True
        Whether predictions are clipped to the range of the training ratings.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has seen and to explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Gd
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Gd(rank=4).fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "gd"
    _updates = True

    def __init__(
        self,
        *,
        rank: int | None = None,
        regularization: float | None = None,
        bias_regularization: float | None = None,
        scaling: Literal["count", "sqrt"] | None = 'sqrt',
        biases: bool = True,
        loss: Literal["squared", "absolute", "huber", "logistic"] = 'squared',
        delta: float = 1.0,
        optimizer: Literal["gd", "momentum", "nesterov", "adagrad", "rmsprop", "adam"] = 'nesterov',
        learning_rate: float = 0.0,
        momentum: float = 0.9,
        max_iter: int = 200,
        tol: float = 1e-05,
        patience: int = 10,
        restarts: int = 1,
        clip: bool = True,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.regularization = regularization
        self.bias_regularization = bias_regularization
        self.scaling = scaling
        self.biases = biases
        self.loss = loss
        self.delta = delta
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.restarts = restarts
        self.clip = clip
        self.keep_history = keep_history
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose


class NmfRatings(Recommender):
    """Non-negative matrix factorisation of ratings: factors of 0 or more that add up.

    The model is that of `als`, `r̂ = α + β_u + β_i + γ_u·γ_i`, with factors of 0 or more, and the fit minimises

    `Σ w (r − r̂)² + λσ Σ_u s_u ‖γ_u‖² + λσ Σ_i s_i ‖γ_i‖² + d_u Σ_u β_u² + d_i Σ_i β_i²`   over   `γ ≥ 0`

    and over the ratings that are there. Nothing can be subtracted: each factor is a group of items, a user has some share of
    each group, and what an item gains from a group is never taken back by another. So factors can be read, which
    those of `als` cannot: the items with the largest entries are what the factor is about. With `biases = false` the model
    is the plain product `r̂ = γ_u·γ_i` of Lee and Seung (ratings must then be 0 or more), as in LIBMF and Surprise;
    biases make it more accurate on almost all ratings.

    `σ`, `d_u` and `d_i` are as for `als`, and λ and the rank (up to 64) are chosen on held-out ratings likewise. The signs cost
    accuracy: where factors need not be read, `als` is better.

    One iteration improves every item and then every user by two rounds of coordinate descent over its bias and its
    factors (hierarchical alternating least squares on the ratings observed): each becomes the best number of 0 or more, all others held fixed, so that
    the objective never rises. The problem is not convex: another seed may end elsewhere. Cost of an iteration: `24 n rank`
    operations for `n` ratings. Users are folded in by the same descent, to its end.

    References: Lee, Seung: Learning the parts of objects by non-negative matrix factorization, 1999. Cichocki, Phan: Fast
    local algorithms for large scale nonnegative matrix and tensor factorizations, 2009. Hsieh, Dhillon: Fast coordinate
    descent methods with variable selection for non-negative matrix factorization, 2011.

    Parameters
    ----------
    rank : int or None, default None
        Number of latent factors of each user and item. Left out, it is chosen on held-out ratings,
        as by `als`. Must be an integer from 1 to 4096, or left out.
    regularization : float or None, default None
        Strength λ of the penalty on factors, in units of the standard deviation of the ratings
        about the biases. Left out, it is chosen on held-out ratings, as by `als`. Must be a finite
        number at least 0, or left out.
    bias_regularization : float or None, default None
        Strength of the penalty on biases: the number of ratings at the mean that every user and
        item has in addition. Left out, it is estimated from the data, for each side, as by `bias`.
        Must be a finite number at least 0, or left out.
    scaling : {"count", "sqrt", None}, default 'sqrt'
        The growth of the penalty of a row with its number of ratings.
        - "count": λ times the number of the row's ratings (the sum of their weights): the choice of
          the literature.
        - "sqrt": λ times the root of that number: between the two others, and better than both on
          most data.
        - None: λ for every row alike: rows with many ratings are fitted more closely.
    biases : bool, default True
        Whether there are a mean and biases of users and items, which may be negative. Without them
        ratings must be 0 or more.
    max_iter : int, default 60
        Largest number of iterations (for each random start). Must be an integer from 1 to 1000000.
    tol : float, default 0.0001
        Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
        Must be a number at least 0 and at most 1.
    patience : int, default 5
        The number of iterations without a better error on held-out ratings after which the fit
        stops; 0 turns this off. Must be an integer from 0 to 1000000.
    restarts : int, default 1
        Number of random starts; the best is kept, by held-out score if there is one, else by
        objective. Must be an integer from 1 to 1000.
    clip : bool, default True
        Whether predictions are clipped to the range of the training ratings.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has seen and to explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import NmfRatings
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = NmfRatings(rank=4).fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "nmfratings"
    _updates = True

    def __init__(
        self,
        *,
        rank: int | None = None,
        regularization: float | None = None,
        bias_regularization: float | None = None,
        scaling: Literal["count", "sqrt"] | None = 'sqrt',
        biases: bool = True,
        max_iter: int = 60,
        tol: float = 0.0001,
        patience: int = 5,
        restarts: int = 1,
        clip: bool = True,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.regularization = regularization
        self.bias_regularization = bias_regularization
        self.scaling = scaling
        self.biases = biases
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.restarts = restarts
        self.clip = clip
        self.keep_history = keep_history
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose


class SoftImpute(Recommender):
    """Matrix completion with the nuclear norm (soft-impute): the rank is found, not given.

    The model is `r̂ = α + β_u + β_i + x_ui`: a mean, a bias for each user and each item, and a matrix `X` of low
    rank. The fit minimises

    `½ Σ w (r − r̂)² + τ ‖X‖_* + ½ d_u Σ_u β_u² + ½ d_i Σ_i β_i²`

    over the ratings that are there. The nuclear norm `‖X‖_*` is the sum of the singular values; it makes all but some
    of them 0. The problem is convex: there is one optimal value, and the fit says how far it is from it at most (the
    duality gap, a share of the objective). `τ = λσ`, where `σ` is the standard deviation of the noise about the biases
    and λ the `regularization`; `d_u`, `d_i` are estimated from the data (see `bias`). So the result does not depend on
    the scale of the ratings.

    Since `‖X‖_* = min ½‖U‖² + ½‖V‖²` over all `X = U Vᵀ`, the fit alternates ridge regressions for the items and the
    users, biases included. After each sweep the factors are turned into those of the singular value decomposition,
    which lowers the penalty and leaves `X` as it is. An iteration is a sweep or two; then the largest singular values of
    the matrix of residuals are computed, and each that is above τ brings a factor in. None above τ means that the
    solution is optimal. The objective never rises. The result does not depend on the number of threads.

    Cost of an iteration: `4 n k²` operations for `n` ratings at rank `k`, and some 160 products of the sparse residuals
    with a vector. Nothing is as large as users × items.

    `als` has the same model with a penalty that grows with the number of ratings of a row (`scaling = sqrt`), and
    often predicts a little better; use `softimpute` for a solution that is certified, and for its rank.

    References: Mazumder, Hastie, Tibshirani: Spectral regularization algorithms for learning large incomplete matrices,
    2010; Hastie, Mazumder, Lee, Zadeh: Matrix completion and low-rank SVD via fast alternating least squares, 2015.

    Parameters
    ----------
    regularization : float or None, default None
        Strength λ of the nuclear norm, in units of the standard deviation of the ratings about the
        biases. Left out, it is chosen on held-out ratings along a path of strengths, from the one
        at which the rank is 0 down, each fit starting from the one before. Of more than a million
        ratings the path is that of a sample of the users, and the strength found is multiplied by
        how much larger the spectral norm of pure noise is on all ratings than on the sample. Must
        be a finite number at least 0, or left out.
    max_rank : int or None, default None
        The largest rank. The fit finds the rank; where this is smaller, the result is a solution of
        this rank, and the duality gap says how much that costs. Left out, it is 256, or the rank at
        which a sweep takes 10¹¹ operations if that is less: 50 for ten million ratings. The report
        says if it is reached. Must be an integer from 1 to 4096, or left out.
    bias_regularization : float or None, default None
        Strength of the penalty on biases: the number of ratings at the mean that every user and
        item has in addition. Left out, it is estimated from the data, for each side, as by `bias`.
        Must be a finite number at least 0, or left out.
    biases : bool, default True
        Whether users and items have biases.
    max_iter : int, default 100
        Largest number of iterations. Must be an integer from 1 to 1000000.
    tol : float, default 1e-05
        Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
        Must be a number at least 0 and at most 1.
    patience : int, default 5
        The number of iterations without a better error on held-out ratings after which the fit
        stops; 0 turns this off. Must be an integer from 0 to 1000000.
    clip : bool, default True
        Whether predictions are clipped to the range of the training ratings.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has seen and to explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import SoftImpute
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = SoftImpute().fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "softimpute"
    _updates = True

    def __init__(
        self,
        *,
        regularization: float | None = None,
        max_rank: int | None = None,
        bias_regularization: float | None = None,
        biases: bool = True,
        max_iter: int = 100,
        tol: float = 1e-05,
        patience: int = 5,
        clip: bool = True,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.regularization = regularization
        self.max_rank = max_rank
        self.bias_regularization = bias_regularization
        self.biases = biases
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.clip = clip
        self.keep_history = keep_history
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose


class Svp(Recommender):
    """Singular value projection: completes a matrix of a given rank by projected gradient descent.

    The model is `r̂ = α + β_u + β_i + x_ui`, with the mean and the biases of `bias`, and a matrix `X` that minimises

    `½ Σ w (r − α − β_u − β_i − x_ui)²` over all `X` of rank at most `rank`.

    An iteration is a step along the gradient, `X + η w (r − x)` on the observed pairs, and then the best approximation
    of that of the rank given, by a truncated singular value decomposition of a sparse matrix plus one of low rank. The
    step is the best one along the gradient within the column space of `X` (normalised iterative hard thresholding), so
    that it fits ratings that are not spread evenly; the iteration is extrapolated from the last two iterates where that
    lowers the objective further. The objective never rises. Without biases a matrix of low rank that is incoherent and
    seen at enough pairs is recovered exactly. The result does not depend on the number of threads.

    Cost of an iteration: about `4 (rank + 64)` products of the sparse matrix with a vector, and `O(rank²)` for each
    user and item. There is no penalty: on ratings with noise, few factors are all that it can fit without overfitting,
    and `als` or `softimpute` predict better.

    References: Jain, Meka, Dhillon: Guaranteed rank minimization via singular value projection, 2010; Tanner, Wei:
    Normalized iterative hard thresholding for matrix completion, 2013.

    Parameters
    ----------
    rank : int or None, default None
        The rank. Left out, it is chosen on held-out ratings. Must be an integer from 1 to 4096, or
        left out.
    biases : bool, default True
        Whether the biases of users and items are taken off first. Without them the ratings are
        completed as they are.
    max_iter : int, default 200
        Largest number of iterations. Must be an integer from 1 to 1000000.
    tol : float, default 0.0001
        Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
        Must be a number at least 0 and at most 1.
    patience : int, default 5
        The number of iterations without a better error on held-out ratings after which the fit
        stops; 0 turns this off. Must be an integer from 0 to 1000000.
    clip : bool, default True
        Whether predictions are clipped to the range of the training ratings.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has seen and to explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Svp
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Svp(rank=4).fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "svp"
    _updates = True

    def __init__(
        self,
        *,
        rank: int | None = None,
        biases: bool = True,
        max_iter: int = 200,
        tol: float = 0.0001,
        patience: int = 5,
        clip: bool = True,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.biases = biases
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.clip = clip
        self.keep_history = keep_history
        self.random_state = random_state
        self.verbose = verbose


class Svt(Recommender):
    """Singular value thresholding: completes a matrix by the smallest nuclear norm that agrees with what is observed.

    The model is `r̂ = α + β_u + β_i + x_ui`, with the mean and the biases of `bias`, and a matrix `X` that minimises

    `τ ‖X‖_* + ½ ‖X‖_F²` subject to `x_ui = r − α − β_u − β_i` on the observed pairs.

    For a large τ this is the matrix of the smallest nuclear norm. The iteration is Uzawa's, ascent on the dual: `Y` is a
    sparse matrix of multipliers on the observed pairs, `X` is `Y` with its singular values reduced by τ (and 0 below),
    and `Y + δ (r − x)` is the next. The step δ starts at `1.2 m n / |Ω|`, is halved where the dual value would
    fall, and extrapolated where that raises it further; so the objective (minus the dual value) never rises, on ratings
    that are not spread evenly as well. The rank follows from τ. The result does not depend on the number of threads.

    Ratings have noise, and a fit that agrees with them exactly agrees with the noise. So the iteration ends at a
    `residual`: the root mean square of what `X` leaves of the observed entries, relative to the entries. Left out, it
    is chosen on held-out ratings. With `residual = 1e-4` and without biases, a matrix of low rank that is incoherent and
    seen at enough pairs is recovered exactly.

    The constraint knows no weights: a rating of weight 0 is absent, all others count alike, and the biases alone
    make use of weights.

    Cost of an iteration: about `4 (rank + 64)` products of the sparse matrix with a vector, `O(rank²)` for each user and
    item. For noisy ratings `softimpute` has the better objective: prefer it.

    Reference: Cai, Candès, Shen: A singular value thresholding algorithm for matrix completion, 2010.

    Parameters
    ----------
    threshold : float, default 5.0
        The threshold τ, in units of `√(m n)` times the root mean square of the observed entries. 5
        is the authors' choice; larger ones are nearer to the smallest nuclear norm and take longer.
        Must be a number at least 0.001 and at most 1000000.
    residual : float or None, default None
        The residual at which the fit ends: the root mean square of the residuals relative to that
        of the entries. Left out, it is chosen on held-out ratings. Must be a number at least 0 and
        at most 1, or left out.
    max_rank : int, default 256
        The largest rank of an iterate. Singular values past it are lost, and the note of the report
        says so. Must be an integer from 1 to 4096.
    biases : bool, default True
        Whether the biases of users and items are taken off first. Without them the ratings are
        completed as they are.
    max_iter : int, default 500
        Largest number of iterations. Must be an integer from 1 to 1000000.
    patience : int, default 10
        The number of iterations without a better error on held-out ratings after which the fit
        stops; 0 turns this off. Must be an integer from 0 to 1000000.
    clip : bool, default True
        Whether predictions are clipped to the range of the training ratings.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has seen and to explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Svt
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Svt().fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "svt"
    _updates = True

    def __init__(
        self,
        *,
        threshold: float = 5.0,
        residual: float | None = None,
        max_rank: int = 256,
        biases: bool = True,
        max_iter: int = 500,
        patience: int = 10,
        clip: bool = True,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        verbose: int = 0,
    ) -> None:
        self.threshold = threshold
        self.residual = residual
        self.max_rank = max_rank
        self.biases = biases
        self.max_iter = max_iter
        self.patience = patience
        self.clip = clip
        self.keep_history = keep_history
        self.random_state = random_state
        self.verbose = verbose


class Ials(Recommender):
    """Implicit feedback by alternating least squares: recommends items from clicks, plays, purchases.

    A value `r` is a sign of interest, and a pair without one is a weak sign of none. The model
    scores a pair by `s = β_u + β_i + γ_u·γ_i` and minimises

    `Σ_observed w c(r) (1 − s)² + α₀ Σ_all s² + Σ_u λ_u (β_u² + ‖γ_u‖²) + Σ_i λ_i (β_i² + ‖γ_i‖²)`

    with the confidence `c(r)`, the weight `α₀` (`unobserved`) of each of all `users × items`
    pairs, and `λ_u = λ (n_u + α₀ · items)^ν`, `λ_i = λ (n_i + α₀ · users)^ν`, where `n` counts what
    was observed of the row. Values cannot be negative; a value of 0 is no sign of interest: the
    pair counts as not observed, but is not recommended either.

    This is the objective of Rendle et al. as it stands. That of Hu, Koren and Volinsky, with weight
    `1 + αr` towards 1 where observed and weight 1 towards 0 elsewhere, is `confidence = linear`,
    `alpha = α`, `unobserved = 1`, `unobserved_on = rest`, `exponent = 0`.

    One iteration solves the items with the users held fixed, then the users with the items held
    fixed; the pairs that were not observed enter by one `rank × rank` matrix, so the cost does
    not grow with `users × items`. The objective, taken over all pairs, never rises. Solvers:
    `cholesky` solves each row exactly (`2 n rank²` operations for `n` observations and `rank³/3`
    for each row); `cg` takes a few steps of conjugate gradients from the last solution (`16 n rank`
    and `8 rank²`); `blocks` solves `block` coordinates at a time (`2 n rank · block`, `rank ·
    block²/3` and `rank²`), which wins by far for large ranks. The result does not depend on the
    number of threads.

    With features of users or items (side information) the prior mean of a row is a linear map of its features,
    `λ_u ‖γ_u − Wᵀx_u‖²` in place of `λ_u ‖γ_u‖²`, and the maps are learned together with the rows under a penalty of
    their own, chosen for each column of features. Users and items without interactions are then known by
    their features: they are at the mean row moved by what their features say, and no pair of theirs counts as
    not observed. `blocks` is then solved as `cg`.

    Held-out data is scored by NDCG@20: all items but those seen in training are ranked for each
    user (for 20,000 of them, if there are more).

    Use `als` for ratings that say how much something was liked.

    References: Hu, Koren, Volinsky: Collaborative filtering for implicit feedback datasets, 2008.
    Rendle, Krichene, Zhang, Koren: Revisiting the performance of iALS on item recommendation
    benchmarks, 2022. Rendle, Krichene, Zhang, Koren: iALS++: speeding up matrix factorization with
    subspace optimization, 2021.

    Parameters
    ----------
    rank : int or None, default None
        Number of latent factors of each user and item. More rank better, if slower, up to many
        hundreds on sparse data. Left out, it is chosen on held-out data, up to 256. Must be an
        integer from 1 to 4096, or left out.
    regularization : float or None, default None
        Strength λ of the penalty on factors and biases. Left out, it is chosen on held-out data.
        With ν = 1 the best is mostly between 0.002 and 0.05; with ν = 0 it is larger by the number
        of observations of a row. Must be a finite number at least 0, or left out.
    feature_regularization : float or None, default None
        Strength of the penalty on the maps from features to factors (with features of users or
        items): the number of rows at the mean that each feature has in addition. Left out, it is
        estimated from the data for each column of features, and a column that says nothing is left
        out. Must be a finite number at least 0, or left out.
    unobserved : float or None, default None
        The weight α₀ of a pair that was not observed, against 1 for one that was. Less makes the
        model bolder. Left out, all pairs together weigh 8 times as much as the observed ones, but
        none more than 1; where λ is left out as well, 4, 16, … times are tried on held-out data.
        Must be a finite number at least 0, or left out.
    unobserved_on : {"all", "rest"}, default 'all'
        The pairs that have the weight α₀.
        - "all": All pairs: the target of an observed pair is c/(c + α₀), with weight c + α₀.
        - "rest": All other pairs: the target of an observed pair is 1, with weight c + α₀.
    confidence : {"constant", "linear", "log"}, default 'constant'
        The confidence c(r) in an observed pair as a function of its value.
        - "constant": c(r) = 1: it matters whether there was interest, not how often.
        - "linear": c(r) = αr: proportional to the value.
        - "log": c(r) = α ln(1 + r/ε): large values level off.
    alpha : float, default 1.0
        The α of the confidence; a constant one does not look at it. Must be a finite number at
        least 0.
    epsilon : float, default 1.0
        The ε of the logarithmic confidence: the value around which it starts to level off. Must be
        a finite number at least 0.000001.
    exponent : float, default 1.0
        The exponent ν by which the penalty of a row grows with what was observed of it: 1 in full,
        0 not at all. Must be a number at least 0 and at most 2.
    biases : bool, default False
        Whether users and items have biases.
    solver : {"auto", "cholesky", "cg", "blocks"}, default 'auto'
        How a row is solved.
        - "auto": Cholesky up to rank 32, cg up to 512, blocks above: the quickest to a given
          quality.
        - "cholesky": Exactly.
        - "cg": A few steps of conjugate gradients from the last solution.
        - "blocks": A block of coordinates after another (iALS++).
    block : int, default 64
        Coordinates solved together by `blocks`: more take fewer iterations, each of them slower.
        Must be an integer from 1 to 4096.
    steps : int, default 3
        Steps of conjugate gradients by `cg` for each row and iteration. Must be an integer from 1
        to 1000.
    max_iter : int, default 16
        Largest number of iterations (for each random start). Must be an integer from 1 to 1000000.
    tol : float, default 0.0001
        Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
        Must be a number at least 0 and at most 1.
    patience : int, default 3
        The number of iterations without a better score on held-out data after which the fit stops;
        0 turns this off. Must be an integer from 0 to 1000000.
    restarts : int, default 1
        Number of random starts; the best is kept, by held-out score if there is one, else by
        objective. Must be an integer from 1 to 1000.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has seen and to explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Ials
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Ials(rank=4).fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "ials"
    _updates = True

    def __init__(
        self,
        *,
        rank: int | None = None,
        regularization: float | None = None,
        feature_regularization: float | None = None,
        unobserved: float | None = None,
        unobserved_on: Literal["all", "rest"] = 'all',
        confidence: Literal["constant", "linear", "log"] = 'constant',
        alpha: float = 1.0,
        epsilon: float = 1.0,
        exponent: float = 1.0,
        biases: bool = False,
        solver: Literal["auto", "cholesky", "cg", "blocks"] = 'auto',
        block: int = 64,
        steps: int = 3,
        max_iter: int = 16,
        tol: float = 0.0001,
        patience: int = 3,
        restarts: int = 1,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.regularization = regularization
        self.feature_regularization = feature_regularization
        self.unobserved = unobserved
        self.unobserved_on = unobserved_on
        self.confidence = confidence
        self.alpha = alpha
        self.epsilon = epsilon
        self.exponent = exponent
        self.biases = biases
        self.solver = solver
        self.block = block
        self.steps = steps
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.restarts = restarts
        self.keep_history = keep_history
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose


class Bpr(Recommender):
    """Bayesian personalised ranking: recommends items from clicks, plays or purchases.

    The model scores an item for a user by `x̂ = β_i + γ_u·γ_i` and learns to rank what a user has
    above what they do not have. The fit minimises, over each pair (user u, item i) that is there
    and an item j drawn from those u does not have, the expectation of

    `−w ln σ(x̂_ui − x̂_uj) + w λ/2 (‖γ_u‖² + ‖γ_i‖² + ‖γ_j‖² + β_i² + β_j²)`

    where `σ(x) = 1/(1 + e⁻ˣ)`. Values say only that there was interest: they must not be negative,
    a value of 0 counts as not there, and by how much it is above 0 does not matter. Sample weights
    `w` do.

    An epoch takes one step for each pair that is there, with a fresh j. Users and items are assigned
    at random to groups, and blocks that share no user and no item run in parallel; j is drawn from
    the group of i. The items are assigned anew in every epoch, into groups of equal size, so over the
    epochs every j the user does not have is equally likely, as if it were drawn from all items.
    The result does not depend on the number of threads. The objective reported is the mean loss
    of the epoch's pairs, each just before its step, without the penalty.

    With held-out data the fit is evaluated by NDCG@20: for each user with held-out items all items but
    those of the training are ranked.

    Cost of an epoch: `16 n rank` operations for `n` pairs. Confidence-weighted least squares
    (`ials`) usually ranks better; this model needs less time for each pass over large data and
    optimises the order directly. Use `als` or `sgd` for ratings.

    Reference: Rendle, Freudenthaler, Gantner, Schmidt-Thieme: BPR: Bayesian personalized ranking
    from implicit feedback, 2009.

    Parameters
    ----------
    rank : int, default 64
        Number of latent factors of each user and item. Must be an integer from 1 to 4096.
    regularization : float or None, default None
        Strength λ of the penalty on factors and biases. Left out, it is chosen by how shorter fits
        rank held-out items, in steps of a factor of 1.5 from 0.02. Must be a finite number at least
        0, or left out.
    biases : bool, default True
        Whether items have biases.
    negatives : {"uniform", "popularity"}, default 'uniform'
        How the other item of a pair is drawn.
        - "uniform": All items that the user does not have are equally likely.
        - "popularity": The more people have an item, the likelier: in proportion to their number to
          the power of `exponent`. Harder pairs, and less weight on popularity in the result.
    exponent : float, default 0.5
        The power to which popularity is taken under `negatives = popularity`. Must be a number at
        least 0 and at most 2.
    learning_rate : float, default 0.05
        Length η of a step. 0.1 instead of 0.05 ranks about as well on Gowalla. Must be a finite
        number at least 0.000000001.
    schedule : {"adaptive", "constant", "cosine"}, default 'cosine'
        How the length of a step changes as the fit goes on. With steps of one length the last
        random pairs leave their noise in the factors: where users are few, the ranking was a tenth
        worse.
        - "adaptive": Shorter for each row the more gradient it has seen (`η / √(1 + Σ mean g²)`):
          quick from the first epoch on.
        - "constant": `η` in every epoch.
        - "cosine": `η` at first, then falling along a half cosine, to nothing after `max_iter`
          epochs.
    max_iter : int, default 100
        Largest number of epochs (for each random start). On Gowalla the ranking is still getting
        better after 40. Must be an integer from 1 to 1000000.
    tol : float, default 0.0
        Stop when an epoch lowers the objective by less than this share of it; 0 turns this off. The
        objective is of random pairs and wavers. Must be a number at least 0 and at most 1.
    patience : int, default 10
        The number of epochs without a better score on held-out data after which the fit stops; 0
        turns this off. Must be an integer from 0 to 1000000.
    restarts : int, default 1
        Number of random starts; the best is kept, by held-out score if there is any, else by
        objective. Must be an integer from 1 to 1000.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has and to explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Bpr
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Bpr(rank=4).fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "bpr"

    def __init__(
        self,
        *,
        rank: int = 64,
        regularization: float | None = None,
        biases: bool = True,
        negatives: Literal["uniform", "popularity"] = 'uniform',
        exponent: float = 0.5,
        learning_rate: float = 0.05,
        schedule: Literal["adaptive", "constant", "cosine"] = 'cosine',
        max_iter: int = 100,
        tol: float = 0.0,
        patience: int = 10,
        restarts: int = 1,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.regularization = regularization
        self.biases = biases
        self.negatives = negatives
        self.exponent = exponent
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.restarts = restarts
        self.keep_history = keep_history
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose


class PureSvd(Recommender):
    """Pure SVD: recommends by the best low-rank approximation of the data, with 0 for what is absent.

    The data are read as a fully observed matrix `A` of users and items, `A_ui = w r`, or 0 where there
    is no rating. The fit finds the `A_k` of rank `rank` that minimises `‖A − A_k‖_F²`, which is the
    truncated singular value decomposition `U Σ Vᵀ` (Eckart and Young), and scores by `A_k`. User
    factors are `U √Σ`, item factors `V √Σ`; a new user is projected on the items, `r V Vᵀ`. The
    objective in the report is the squared error `‖A‖_F² − Σ σ²`.

    An iteration is one restart of a block Lanczos method on the smaller side of the matrix, in double
    precision; the objective never rises, and the result does not depend on the number of threads.

    Cost of an iteration: about `2 (rank + 64)` products with the matrix, and `O(rank²)` for each row of
    the smaller side; ten iterations or so. Since it treats absent ratings as 0, it ranks
    items and does not predict ratings: use `als` for that. Models of implicit feedback that give absent
    pairs less weight usually rank better.

    Reference: Cremonesi, Koren, Turrin: Performance of recommender algorithms on top-N recommendation
    tasks, 2010.

    Parameters
    ----------
    rank : int, default 64
        Number of singular values. Few generalise, many overfit; 32 to 64 is good on data of the
        size of MovieLens. Must be an integer from 1 to 4096.
    max_iter : int, default 50
        Largest number of iterations (restarts of the method). Must be an integer from 1 to 1000000.
    tol : float, default 1e-07
        Stop when an iteration lowers the objective by less than this share of it; 0 turns this off.
        Must be a number at least 0 and at most 1.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has seen and to explain.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import PureSvd
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = PureSvd(rank=4).fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "svd"

    def __init__(
        self,
        *,
        rank: int = 64,
        max_iter: int = 50,
        tol: float = 1e-07,
        keep_history: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.max_iter = max_iter
        self.tol = tol
        self.keep_history = keep_history
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose


class Ease(Recommender):
    """Item–item ridge regression in closed form (EASE): recommends what goes with the user's items.

    The score of item `j` for a user with strengths `x` is `x·b_j`, and the weights minimise

    `‖X − X B‖² + λ ‖B‖²` with `B_jj = 0`,

    so that no item recommends itself. With `P = (XᵀX + λ I)⁻¹` the solution is `B_ij = −P_ij / P_jj`: one
    inversion and no iterations. Weights may be negative, which is where it differs from `neighbours`:
    an item counts for what it adds to the others. Values become strengths as `strength` says, and the
    penalty is in units of their mean square, so that a common factor of all values changes nothing.

    Cost: `Σ_u n_u²` for users with `n_u` items and `n³` operations for `n` items, in double precision on
    all threads; the result does not depend on their number. A list takes `n_u · n` operations. Memory:
    `12 n²` bytes during the fit and `4 n²` afterwards (4.8 GB and 1.6 GB of 20,000 items); more items than
    `max_items` are refused. A new user is scored from their items alone, exactly.

    Without a `regularization`, a few strengths are tried: a fifth of the items of up to 2,000 users is held
    out and ranked by the weights that the rest gives, for the 4,096 most popular items. The report says what
    was chosen. Held-out data is scored by NDCG@20 as of `ials`. The objective in the report is
    `‖X − X B‖² + λ ‖B‖²`.

    `update` scores users from their new items at once. A new item gets the weights into it that a fit to all interactions
    would give it with the same penalty (by conjugate gradients), and adds to known items what one step of coordinate
    descent gives; weights between known items stay (with `items`, those into items with new interactions are solved
    again).

    Use `slim`, `spectral` or `ials` where items are too many.

    Reference: Steck: Embarrassingly shallow autoencoders for sparse data, 2019.

    Parameters
    ----------
    regularization : float or None, default None
        Strength λ of the penalty, in units of the mean square of the strengths: of interactions
        that are there or not, the λ of the paper. Left out, it is chosen by held-out items; it is
        mostly between 30 and 1000. Must be a finite number at least 0.000001, or left out.
    strength : {"presence", "log", "value"}, default 'presence'
        The strength of an interaction as a function of its value.
        - "presence": `x = w` for every value above 0: that there was an interaction counts, not how
          much.
        - "log": `x = w ln(1 + r)`: counts that level off.
        - "value": `x = w r`: counts as they are.
    max_items : int, default 20000
        The largest number of items: more are refused before any memory is taken. `12 n²` bytes are
        needed to fit `n` items, 4.8 GB of 20,000. Must be an integer from 1 to 1000000.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Ease
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Ease().fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "ease"
    _updates = True

    def __init__(
        self,
        *,
        regularization: float | None = None,
        strength: Literal["presence", "log", "value"] = 'presence',
        max_items: int = 20000,
        verbose: int = 0,
    ) -> None:
        self.regularization = regularization
        self.strength = strength
        self.max_items = max_items
        self.verbose = verbose


class Slim(Recommender):
    """Sparse linear weights between items (SLIM): recommends what goes with the user's items.

    The score of item `j` for a user with strengths `x` is `x·b_j`, and the weights of each item minimise

    `½ ‖x_j − X b_j‖² + λ₁ ‖b_j‖₁ + ½ λ₂ ‖b_j‖²` with `b_j ≥ 0` and `B_jj = 0`,

    a non-negative elastic net on the columns of all other items. Few weights are left, so that the model is
    small where that of `ease` has a weight for every pair, a list is quick, and each recommendation is
    explained by a few of the user's items. Values become strengths as `strength` says, and both penalties
    are in units of their mean square.

    Solved by coordinate descent on the Gram matrix `XᵀX`, of which the pairs of items that share a user are
    kept, with a working set that grows until no other weight would rise. Since nothing is negative, a weight
    can only be above 0 where the two items share more than `λ₁`: all others are never looked at. Items are
    solved in parallel; the result does not depend on the number of threads. Cost: `Σ_u n_u²` for users with
    `n_u` items, then for each item some passes over the pairs of those in its working set. Memory: 8 bytes for
    each pair of items that share a user; more than `max_pairs` are refused.

    Penalties that are left out are chosen, `λ₂` first: a fifth of the items of up to 2,000 users is held out and
    ranked by the weights that the rest gives, for the 2,048 most popular items. The report says what was
    chosen. Held-out data is scored by NDCG@20 as of `ials`. The objective in the report is the sum over the
    items.

    `update` scores users from their new items at once. A new item gets the weights into it that a fit to all interactions
    would give it with the same penalties, and adds to known items what one step of coordinate descent gives; weights
    between known items stay (with `items`, those into items with new interactions are solved again).

    `ease` mostly ranks better where items are few; use `spectral` or `ials` where users have very many items.

    Reference: Ning, Karypis: SLIM: sparse linear methods for top-N recommender systems, 2011.

    Parameters
    ----------
    regularization : float or None, default None
        The penalty λ₂ on the squares of the weights, in units of the mean square of the strengths.
        Left out, it is chosen by held-out items. Must be a finite number at least 0.000001, or left
        out.
    sparsity : float or None, default None
        The penalty λ₁ on the sum of the weights, in the same units: of interactions that are there
        or not, the number of users that two items must share to count at all. More leaves fewer
        weights. Left out, it is chosen by held-out items. Must be a finite number at least 0, or
        left out.
    strength : {"presence", "log", "value"}, default 'presence'
        The strength of an interaction as a function of its value.
        - "presence": `x = w` for every value above 0: that there was an interaction counts, not how
          much.
        - "log": `x = w ln(1 + r)`: counts that level off.
        - "value": `x = w r`: counts as they are.
    max_pairs : int, default 1000000000
        The largest number of pairs of items that share a user, each of which takes 8 bytes during
        the fit. It is compared with `Σ_u n_u²` for users with `n_u` items, or the square of the
        number of items if that is less. Must be an integer from 1 to 1000000000000.
    tol : float, default 0.0001
        Coordinate descent on an item ends when no weight changes by more than this. Must be a
        number at least 0 and at most 1.
    max_iter : int, default 100
        The largest number of passes over the working set of an item, each time it has grown. Must
        be an integer from 1 to 1000000.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Slim
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Slim().fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "slim"
    _updates = True

    def __init__(
        self,
        *,
        regularization: float | None = None,
        sparsity: float | None = None,
        strength: Literal["presence", "log", "value"] = 'presence',
        max_pairs: int = 1000000000,
        tol: float = 0.0001,
        max_iter: int = 100,
        verbose: int = 0,
    ) -> None:
        self.regularization = regularization
        self.sparsity = sparsity
        self.strength = strength
        self.max_pairs = max_pairs
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose


class Spectral(Recommender):
    """A filter on the graph of users and items: recommends what lies near the user's items.

    The strengths `X` of the interactions are normalised by the degrees of users and items, `R̃ = D_u^-a X
    D_i^-b / σ₁`, and a user's row `x` of strengths becomes the scores `y` by two steps. Blurring adds a linear
    filter and an ideal low-pass of the `rank` largest singular vectors `V` of `R̃`,

    `y₀ = x R̃ᵀR̃ + α x D_i^-b V Vᵀ D_i^b`,

    and sharpening follows `dy/dt = −y R̃ᵀR̃` for a time `T` by one step of Runge and Kutta's method of order
    four, which undoes part of the blur: a polynomial of `R̃ᵀR̃`. Division by the largest singular value `σ₁`
    makes `T` mean the same for all exponents. At last the score of each item is multiplied by `D_i^γ`. Nothing is
    learned but `V`: a new user is filtered like those of the training data. Values become strengths as `strength` says.

    `R̃ᵀR̃` is never formed: a block of users takes ten products with `R̃`, each a pass over the interactions.
    Cost: the singular vectors (block Lanczos, `O(rank² n)` for the smaller side `n`), then for each user `10`
    operations an interaction of all the data and `rank` for each item. Memory: 16 bytes an interaction and
    `8 rank` an item. The result does not depend on the number of threads.

    `rank`, `low_pass`, `sharpening` and `popularity` that are left out are chosen together: a fifth of the items of all
    users is held out, and for up to 4,000 of them ranked by the filters of what is left, which takes longer than the fit
    itself. Exponents that are left out are chosen likewise where data are so small that further graphs cost little: each
    pair of exponents has singular vectors of its own. The report says what was chosen. Held-out data is scored by NDCG@20
    as of `ials`. The objective in the report is the share of `‖R̃‖²` that the low-pass leaves out.

    Items held out at random are as popular as those of training. Where the items to come are less so (news, places), a
    smaller `popularity` and a larger `item_exponent` than the ones chosen can be better: on Gowalla random hold-outs prefer
    an item exponent of 0.4, and its published test part 0.5.

    `update` scores users from their new items at once. The graph stays that of the fit: a new item is reached from, and
    leads to, the users of the fit who have it, but no path goes through it, and new users are not in the graph. An item
    that no user of the fit has scores 0.

    It is at its best on sparse data with many items. Use `ease` where items are few and users many.

    References: Shen, Wu, Zhang, Shan, Zhang, Letaief, Li: How powerful is graph convolution for recommendation?,
    2021. Choi, Hong, Park, Cho: Blurring-sharpening process models for collaborative filtering, 2023.

    Parameters
    ----------
    rank : int or None, default None
        Number of singular vectors of the low-pass filter; 0 leaves it out. Left out, it is chosen
        among `max_rank` (or a quarter of the smaller number of users and items, if that is less)
        and its half, quarter, eighth and sixteenth. Must be an integer from 0 to 8192, or left out.
    max_rank : int, default 512
        The largest rank that can be chosen. Sparse data with many items gain from more, at the cost
        of time that grows with the square. Must be an integer from 1 to 8192.
    low_pass : float or None, default None
        The weight α of the low-pass filter, against 1 for the linear filter. Left out, it is
        chosen. Must be a number at least 0 and at most 1000, or left out.
    sharpening : float or None, default None
        The time T of sharpening; 0 leaves it out, and a user takes a sixth of the time then. Left
        out, it is chosen among 0, 1 and 2. Must be a number at least 0 and at most 5, or left out.
    popularity : float or None, default None
        The exponent γ of the degrees of items that scores are multiplied by: more recommends more
        popular items. Left out, it is chosen among -0.2, -0.1, 0, 0.1 and 0.2. Must be a number at
        least -1 and at most 1, or left out.
    user_exponent : float or None, default None
        The exponent a of the degrees of users: more gives users with many items less say. Left out,
        it is chosen in steps of 0.1 where a try costs little, and is 0.3 otherwise: random hold-
        outs of data of all kinds prefer about that to the 0.5 of the papers. Must be a number at
        least 0 and at most 2, or left out.
    item_exponent : float or None, default None
        The exponent b of the degrees of items: more makes paths through popular items count less.
        Left out, it is chosen in steps of 0.1 where a try costs little, and is the papers' 0.5
        otherwise. Must be a number at least 0 and at most 2, or left out.
    strength : {"presence", "log", "value"}, default 'presence'
        The strength of an interaction as a function of its value.
        - "presence": `x = w` for every value above 0: that there was an interaction counts, not how
          much.
        - "log": `x = w ln(1 + r)`: counts that level off.
        - "value": `x = w r`: counts as they are.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Spectral
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Spectral(rank=4).fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "spectral"
    _updates = True

    def __init__(
        self,
        *,
        rank: int | None = None,
        max_rank: int = 512,
        low_pass: float | None = None,
        sharpening: float | None = None,
        popularity: float | None = None,
        user_exponent: float | None = None,
        item_exponent: float | None = None,
        strength: Literal["presence", "log", "value"] = 'presence',
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        verbose: int = 0,
    ) -> None:
        self.rank = rank
        self.max_rank = max_rank
        self.low_pass = low_pass
        self.sharpening = sharpening
        self.popularity = popularity
        self.user_exponent = user_exponent
        self.item_exponent = item_exponent
        self.strength = strength
        self.random_state = random_state
        self.verbose = verbose


class Mean(Recommender):
    """The mean of all ratings: predicts the same for everyone and everything.

    `r̂ = α` with `α = Σ w r / Σ w`, which minimises `Σ w (r − α)²` over all constants. Its error is
    the spread of the ratings, so a model that does not beat it has learned nothing. All items
    score alike; recommendations come in the order of the ids.

    Cost: one pass over the ratings. Use `bias` for the least that tells items apart, and `popular`
    for recommendations without ratings.

    Parameters
    ----------
    keep_history : bool, default True
        Whether the model keeps the training ratings, to leave out what a user has seen.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Mean
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Mean().fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "mean"

    def __init__(
        self,
        *,
        keep_history: bool = True,
        verbose: int = 0,
    ) -> None:
        self.keep_history = keep_history
        self.verbose = verbose


class Bias(Recommender):
    """The mean with biases: who rates high, what is rated high.

    `r̂ = α + β_u + β_i`, where the mean and the biases minimise

    `Σ w (r − α − β_u − β_i)² + d_u Σ_u β_u² + d_i Σ_i β_i²`.

    Each bias is a damped mean of what is left to it, `β_u = Σ w (r − α − β_i) / (Σ w + d_u)`;
    the two sides are solved in turns until nothing moves. A new user has their bias in closed
    form. Everyone is recommended the same items, less what they have seen.

    The damping of each side is the ratio `σ² / Var β` of the variance of the noise to that of its biases,
    estimated from the data by EM (empirical Bayes); the report says what it came to. So it does not
    depend on the scale of the ratings. `damping` sets both by hand.

    Cost: two passes over the ratings a round, some ten rounds, and as many again for the damping. It is
    what a latent factor model has to beat; use `als` for predictions that differ between users by more than a constant.

    References: Koren: Factor in the neighbors, 2010, section 2.1 (baseline estimates); Searle, Casella,
    McCulloch: Variance components, 1992.

    Parameters
    ----------
    damping : float or None, default None
        Number of ratings with a residual of zero that are added to every user and item, so that few
        ratings make a small bias. Left out, it is estimated from the data, for each side. Must be a
        finite number at least 0, or left out.
    clip : bool, default True
        Whether predictions are clipped to the range of the training ratings.
    keep_history : bool, default True
        Whether the model keeps the training ratings, to leave out what a user has seen and to
        explain.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Bias
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Bias().fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "bias"

    def __init__(
        self,
        *,
        damping: float | None = None,
        clip: bool = True,
        keep_history: bool = True,
        verbose: int = 0,
    ) -> None:
        self.damping = damping
        self.clip = clip
        self.keep_history = keep_history
        self.verbose = verbose


class Popular(Recommender):
    """The popularity baseline: recommends the most popular items that the user has not seen.

    The score of an item is the number of users who chose it, `Σ_u w_ui`, as a share of all pairs
    unless `measure` says otherwise; it is the same for everyone. As shares the scores are the
    maximum-likelihood estimate of the next choice of anyone; the objective in the report is the
    entropy `−Σ p ln p` of these shares.

    Cost: one pass over the data. It is what a recommender has to beat on data without opinions,
    and what to show to a user about whom nothing is known. Use `neighbours` or a latent factor model
    for recommendations that depend on the user.

    Parameters
    ----------
    measure : {"share", "count", "sum"}, default 'share'
        How the popularity of an item is measured.
        - "share": The share of all pairs that are of this item: the chance that the next one is.
        - "count": The number of users who chose it (the sum of the weights).
        - "sum": The sum of the values (times their weights): plays instead of players.
    keep_history : bool, default True
        Whether the model keeps the training data, to leave out what a user has seen.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Popular
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Popular().fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "popular"

    def __init__(
        self,
        *,
        measure: Literal["share", "count", "sum"] = 'share',
        keep_history: bool = True,
        verbose: int = 0,
    ) -> None:
        self.measure = measure
        self.keep_history = keep_history
        self.verbose = verbose


class Neighbours(Recommender):
    """Item neighbours: recommends items like those the user chose.

    The similarity `s_ij` of two items is a product over the users they share (`similarity` says
    which), and each item keeps the `neighbours` most like it. The score of item `j` for a user is
    `Σ_i s_ij r_ui` over the items `i` they chose that are among the neighbours of `j`; so every
    recommendation is explained by the user's own items, and a new user needs no training. The
    objective in the report is the share of all similarity that the kept neighbours leave out.

    Cost: `Σ_u n_u²` for users with `n_u` items, in parallel; some `neighbours · n_u` to recommend. Use a
    latent factor model where users have few items in common, or where a few users have very many.

    References: Sarwar, Karypis, Konstan, Riedl: Item-based collaborative filtering recommendation
    algorithms, 2001; Robertson, Zaragoza: The probabilistic relevance framework: BM25 and beyond,
    2009.

    Parameters
    ----------
    similarity : {"cosine", "tfidf", "bm25"}, default 'tfidf'
        How alike two items are.
        - "cosine": The cosine of the two columns of the data.
        - "tfidf": The cosine after square roots, with users who chose much counting less: `√r ln((1
          + n_items) / (1 + n_u))`. Ranks better than the plain cosine on all data tried.
        - "bm25": The product of BM25 weights, which saturate with the value and discount popular
          items; not bounded by 1.
    neighbours : int, default 300
        How many neighbours each item keeps. Dense data rank best with 100 to 300, thin data with
        more, up to all; more hardly cost anything to fit, but memory and time to recommend. Must be
        an integer from 1 to 1000000.
    k1 : float, default 1.2
        BM25: how soon a value saturates; 0 sees only whether there is one. Must be a finite number
        at least 0.
    b : float, default 0.75
        BM25: how much an item is discounted for its popularity, from 0 to 1. Must be a number at
        least 0 and at most 1.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    users_, items_
        The ids of training, ascending.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.factor import Neighbours
    >>> rng = np.random.default_rng(0)
    >>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
    >>> model = Neighbours().fit((users, items, rng.integers(1, 6, 400)))
    >>> items, scores = model.recommend(7, n=3)
    >>> items.shape
    (3,)
    """

    _kind = "neighbours"

    def __init__(
        self,
        *,
        similarity: Literal["cosine", "tfidf", "bm25"] = 'tfidf',
        neighbours: int = 300,
        k1: float = 1.2,
        b: float = 0.75,
        verbose: int = 0,
    ) -> None:
        self.similarity = similarity
        self.neighbours = neighbours
        self.k1 = k1
        self.b = b
        self.verbose = verbose
