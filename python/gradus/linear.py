"""Linear models and support vector machines.

Written by python/generate.py from the definitions in crates/gradus-linear: change those.
"""

from __future__ import annotations

from typing import Any, Callable, Literal

import numpy as np

from gradus._features import Classifier, Regressor
from gradus._machines import SupportVectorClassifier, SupportVectorRegressor

__all__ = [
    "Constant",
    "ElasticNet",
    "Lasso",
    "Linear",
    "Logistic",
    "Majority",
    "Ridge",
    "Svm",
    "Svr",
]


class Linear(Regressor):
    """Linear regression by the loss of your choice.

    Predicts `b + x·β` and minimises the weighted mean of a loss of the residuals `r = y − b − x·β`
    (of all losses but `squared`, plus `λ ‖β‖²` if `regularization` is given):

    | loss | of a residual | predicts | good for |
    |---|---|---|---|
    | `squared` | `½ r²` | the mean | Gaussian noise; standard errors come with it |
    | `absolute` | `\\|r\\|` | the median | Laplace noise, gross errors in the target |
    | `huber` | `½ r²` up to `δ`, then linear | nearly the mean | some gross errors |
    | `tukey` | bisquare: flat beyond `δ` | nearly the mean | many gross errors; not convex |
    | `quantile` | `q r` above, `(q − 1) r` below | that quantile | bounds, stocks, skewed targets |

    `squared` is solved in closed form: by Cholesky where the features are independent, else through
    the products between samples or an orthogonal triangle and its singular values. Where features are
    dependent or more than the samples, many solutions are equally good: the one with the smallest
    norm `‖β‖` (of the coefficients for the features as given) is returned, and the report says so. Of
    more than 4,096 features and samples it is found by conjugate gradients. `2 n d²` operations. It
    reports standard errors, t and p values of the coefficients, R²,
    log-likelihood, AIC and BIC.

    `absolute` and `quantile` are linear programs, solved along a path of smoothed losses whose
    solutions are feasible for the dual, so the duality gap is known; `huber` by damped Newton steps,
    which cannot fail; `tukey` by reweighting from Huber's solution. `n d²` operations a step. Where
    `delta` is left out it comes from the median absolute residual of the `absolute` fit: 1.345 and
    4.685 times the scale, for 95 % efficiency under Gaussian noise.

    With `positive` coefficients (of `squared`) the solution comes from coordinate descent, without
    standard errors.

    Use `ridge` or `lasso` where features are many or alike.

    References: Huber: Robust estimation of a location parameter, 1964. Koenker, Bassett: Regression
    quantiles, 1978. Madsen, Nielsen: A finite smoothing algorithm for linear ℓ1 estimation, 1993.

    Parameters
    ----------
    loss : {"squared", "absolute", "huber", "tukey", "quantile"}, default 'squared'
        The loss of a residual.
        - "squared": Half the square: least squares.
        - "absolute": The absolute value: predicts the median.
        - "huber": Quadratic for small residuals, linear for large ones.
        - "tukey": Bisquare: large residuals do not count at all.
        - "quantile": Piecewise linear, with different slopes above and below: predicts a quantile.
    delta : float or None, default None
        The residual δ from which `huber` and `tukey` hold a target for an error, in units of the
        target. Left out, it comes from the residuals. Must be a finite number greater than 0, or
        left out.
    quantile : float, default 0.5
        The quantile that `quantile` predicts. Must be a number greater than 0 and less than 1.
    regularization : float, default 0.0
        Strength λ of the penalty `λ ‖β‖²` on the coefficients; the intercept is not penalised. For
        all losses but `squared`, whose penalised form is `ridge`. Must be a finite number at least
        0.
    fit_intercept : bool, default True
        Whether there is an intercept.
    positive : bool, default False
        Whether coefficients must not be negative, for the loss `squared`.
    tol : float, default 1e-08
        The largest certificate (duality gap or gradient, as a share) at which the fit ends. Must be
        a number at least 0 and at most 1.
    max_iter : int, default 1000
        The largest number of steps, for losses with an iterative solver. Must be an integer from 1
        to 1000000.
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
    coef_
        Coefficients, features (targets × features, if y has columns); none of a kernel.
    intercept_
        The intercept.
    n_features_in_
        Number of features, or columns of the frame, seen in `fit`.
    feature_names_in_
        Their names, if `fit` got a data frame.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.linear import Linear
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Linear().fit(X, X @ [2.0, -1.0] + 3.0)
    >>> model.predict([[1.0, 1.0]]).shape
    (1,)
    """

    _kind = "linear"

    def __init__(
        self,
        *,
        loss: Literal["squared", "absolute", "huber", "tukey", "quantile"] = 'squared',
        delta: float | None = None,
        quantile: float = 0.5,
        regularization: float = 0.0,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-08,
        max_iter: int = 1000,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.delta = delta
        self.quantile = quantile
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.tol = tol
        self.max_iter = max_iter
        self.missing = missing
        self.verbose = verbose


class Ridge(Regressor):
    """Ridge regression: least squares that keeps coefficients small.

    Predicts `b + x·β` and minimises

    `(1 / 2W) Σ w_i (y_i − b − x_i·β)² + λ ‖β‖²`

    with weights `w` that add up to `W`; the intercept `b` is not penalised. scikit-learn's `alpha`
    is `2 W λ`; the λ of an elastic net with ρ = 0 is twice this one. The penalty makes the solution unique and steady where features are many or alike,
    and keeps all of them; `lasso` drops those that do not help.

    Without a `regularization`, a hundred strengths are tried (or those of `lambdas`) and the one with
    the smallest leave-one-out error is taken: both follow from one eigendecomposition, at the cost of a
    few fits. Weaker ones are tried while the weakest is the best. Features are then standardised unless
    `standardize` says otherwise, so that the choice does not depend on units. The model keeps the
    strengths and their errors.

    Solved exactly through the smaller of `features × features` (`2 n d²` operations) and
    `samples × samples`, polished by the residual of the data itself; where both sides are above
    4,096, by conjugate gradients. `positive` coefficients come from coordinate descent, and their
    strength from five-fold cross-validation. The result does not depend on the number of threads.

    Reference: Hoerl, Kennard: Ridge regression: biased estimation for nonorthogonal problems, 1970.

    Parameters
    ----------
    regularization : float or None, default None
        Strength λ of the penalty. Left out, it is chosen by the leave-one-out error. Must be a
        finite number at least 0, or left out.
    n_lambdas : int, default 100
        How many strengths are tried where none is given, at equal ratios over eight powers of ten;
        more where the weakest is the best. Must be an integer from 2 to 10000.
    lambdas : list[float] or None, default None
        The strengths to choose from, instead of `n_lambdas` of its own. Must be a list of finite
        numbers at least 0, or left out.
    fit_intercept : bool, default True
        Whether there is an intercept.
    standardize : bool or None, default None
        Whether the penalty sees features divided by their standard deviation, so that their units
        do not matter. The coefficients are for the features as they are, either way. Left out, it
        is done where the strength is chosen by the leave-one-out error, and not where
        `regularization` is given.
    positive : bool, default False
        Whether coefficients must not be negative.
    tol : float, default 1e-10
        Conjugate gradients end when the gradient is below this share of the gradient at 0; with
        `positive`, coordinate descent ends when the duality gap is below this share of the
        objective of no coefficients. Must be a number at least 0 and at most 1.
    max_iter : int, default 1000
        The largest number of steps of conjugate gradients; with `positive`, of hundreds of passes.
        Must be an integer from 1 to 1000000.
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
    coef_
        Coefficients, features (targets × features, if y has columns); none of a kernel.
    intercept_
        The intercept.
    n_features_in_
        Number of features, or columns of the frame, seen in `fit`.
    feature_names_in_
        Their names, if `fit` got a data frame.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.linear import Ridge
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Ridge().fit(X, X @ [2.0, -1.0] + 3.0)
    >>> model.predict([[1.0, 1.0]]).shape
    (1,)
    """

    _kind = "ridge"

    def __init__(
        self,
        *,
        regularization: float | None = None,
        n_lambdas: int = 100,
        lambdas: list[float] | None = None,
        fit_intercept: bool = True,
        standardize: bool | None = None,
        positive: bool = False,
        tol: float = 1e-10,
        max_iter: int = 1000,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        verbose: int = 0,
    ) -> None:
        self.regularization = regularization
        self.n_lambdas = n_lambdas
        self.lambdas = lambdas
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.positive = positive
        self.tol = tol
        self.max_iter = max_iter
        self.missing = missing
        self.verbose = verbose


class Lasso(Regressor):
    """The lasso: linear regression that leaves out the features it can do without.

    Minimises, with weights `w` that add up to `W`,

    `Σ w (y − b − x·β)² / 2W + λ ‖β‖₁`.

    Coordinate descent moves one coefficient at a time to where it is best, `β_j ←
    S(x_j·r + ‖x_j‖² β_j, λ) / ‖x_j‖²` with the soft threshold `S`, on a
    working set of the features that a solution is likely to need; Anderson extrapolation leads long
    valleys to their end. Dense samples with up to some hundred features (some thousand on a path)
    are read once, for their Gram matrix, and passes then cost features². Otherwise a pass over all
    features costs as many operations as there are entries, and products between the features of the
    working set are kept along the path; a sparse matrix stays sparse, though it is centred. Features
    that a gap safe sphere rules out are not looked at again.

    The fit ends when the duality gap is small: the report's certificate is a proof of how far above
    the least objective the model can be. The result does not depend on the number of threads.

    Without `regularization`, a path of `n_lambdas` penalties (or of `lambdas`) is fitted, and
    `folds`-fold cross-validation chooses one; the model keeps the path and its errors. The path is
    made longer while the error still falls at its end. Features are then standardised unless
    `standardize` says otherwise, so that the choice does not depend on units. Samples are dealt out to
    folds by their content, so that the choice does not depend on their order. Several targets are
    fitted one by one.

    Use `elasticnet` where features are strongly correlated: the lasso then picks one of a group as
    chance has it. Use `ridge` where all features matter.

    References: Friedman, Hastie, Tibshirani: Regularization paths for generalized linear models via
    coordinate descent, 2010. Ndiaye, Fercoq, Gramfort, Salmon: Gap safe screening rules for sparsity
    enforcing penalties, 2017. Massias, Gramfort, Salmon: Celer: a fast solver for the lasso with
    dual extrapolation, 2018. Bertrand, Massias: Anderson acceleration of coordinate descent, 2021.

    Parameters
    ----------
    regularization : float or None, default None
        Strength λ of the penalty; scikit-learn's `alpha`. Left out, it is chosen by cross-
        validation along a path of penalties. Must be a finite number at least 0, or left out.
    fit_intercept : bool, default True
        Whether there is an intercept, which is not penalised.
    standardize : bool or None, default None
        Whether each feature is divided by its standard deviation before it is penalised, so that
        its unit does not matter. The coefficients are those of the features as given. Left out, it
        is done where the penalty is chosen by cross-validation, and not where `regularization` is
        given.
    positive : bool, default False
        Whether coefficients must not be negative.
    max_iter : int, default 100000
        The largest number of passes over the coefficients, for each penalty. Must be an integer
        from 1 to 1000000000.
    tol : float, default 1e-06
        The duality gap to reach, as a share of `Σ w (y − ȳ)² / 2W`, the objective of no
        coefficients. scikit-learn's `tol` is a share of twice that; its default of 1e-4 is 2e-4
        here. Must be a number at least 0 and at most 1.
    folds : int or splitter or pairs of indices, default 5
        Folds of the cross-validation. Must be an integer from 2 to 1000. Or a splitter of scikit-
        learn, or pairs of training and test indices, that put each sample into the test set of one
        fold.
    n_lambdas : int, default 100
        Penalties on the path of the cross-validation, from the smallest that makes all coefficients
        0 down to a thousandth of it, or further where the error still falls there. Must be an
        integer from 1 to 10000.
    lambdas : list[float] or None, default None
        The penalties that cross-validation chooses from, instead of `n_lambdas` of its own. Must be
        a list of finite numbers at least 0, or left out.
    rule : {"min", "one_se"}, default 'min'
        The rule by which cross-validation chooses the penalty.
        - "min": The one with the least error on held-out folds.
        - "one_se": The largest whose error is within one standard error of the least: fewer
          features at little loss.
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
    warm_start : bool, default False
        Whether another `fit` starts from the coefficients of the last one, where it has as many: it
        then takes fewer iterations to the same solution. A fit that chooses its penalty starts
        anew.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    coef_
        Coefficients, features (targets × features, if y has columns); none of a kernel.
    intercept_
        The intercept.
    n_features_in_
        Number of features, or columns of the frame, seen in `fit`.
    feature_names_in_
        Their names, if `fit` got a data frame.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.linear import Lasso
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Lasso().fit(X, X @ [2.0, -1.0] + 3.0)
    >>> model.predict([[1.0, 1.0]]).shape
    (1,)
    """

    _kind = "lasso"

    def __init__(
        self,
        *,
        regularization: float | None = None,
        fit_intercept: bool = True,
        standardize: bool | None = None,
        positive: bool = False,
        max_iter: int = 100000,
        tol: float = 1e-06,
        folds: int | Any = 5,
        n_lambdas: int = 100,
        lambdas: list[float] | None = None,
        rule: Literal["min", "one_se"] = 'min',
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.positive = positive
        self.max_iter = max_iter
        self.tol = tol
        self.folds = folds
        self.n_lambdas = n_lambdas
        self.lambdas = lambdas
        self.rule = rule
        self.random_state = random_state
        self.missing = missing
        self.warm_start = warm_start
        self.verbose = verbose


class ElasticNet(Regressor):
    """The elastic net: linear regression that leaves out features, and keeps correlated ones together.

    Minimises, with weights `w` that add up to `W`,

    `Σ w (y − b − x·β)² / 2W + λ (ρ ‖β‖₁ + (1 − ρ)/2 ‖β‖²)`.

    Coordinate descent moves one coefficient at a time to where it is best, `β_j ←
    S(x_j·r + ‖x_j‖² β_j, λρ) / (‖x_j‖² + λ(1 − ρ))` with the soft threshold `S`, on a
    working set of the features that a solution is likely to need; Anderson extrapolation leads long
    valleys to their end. Dense samples with up to some hundred features (some thousand on a path)
    are read once, for their Gram matrix, and passes then cost features². Otherwise a pass over all
    features costs as many operations as there are entries, and products between the features of the
    working set are kept along the path; a sparse matrix stays sparse, though it is centred. Features
    that a gap safe sphere rules out are not looked at again.

    The fit ends when the duality gap is small: the report's certificate is a proof of how far above
    the least objective the model can be. The result does not depend on the number of threads.

    Without `regularization`, a path of `n_lambdas` penalties (or of `lambdas`) is fitted, and
    `folds`-fold cross-validation chooses one; the model keeps the path and its errors. The path is
    made longer while the error still falls at its end. Features are then standardised unless
    `standardize` says otherwise, so that the choice does not depend on units. Samples are dealt out to
    folds by their content, so that the choice does not depend on their order. Several targets are
    fitted one by one.

    Use `lasso` for the fewest features, and `ridge` where all of them matter: with ρ = 0 this is
    ridge regression by a slower way, whose λ is half of this one (`ridge` minimises `… + λ ‖β‖²`).

    References: Friedman, Hastie, Tibshirani: Regularization paths for generalized linear models via
    coordinate descent, 2010. Ndiaye, Fercoq, Gramfort, Salmon: Gap safe screening rules for sparsity
    enforcing penalties, 2017. Massias, Gramfort, Salmon: Celer: a fast solver for the lasso with
    dual extrapolation, 2018. Bertrand, Massias: Anderson acceleration of coordinate descent, 2021.

    Parameters
    ----------
    regularization : float or None, default None
        Strength λ of the penalty; scikit-learn's `alpha`. Left out, it is chosen by cross-
        validation along a path of penalties. Must be a finite number at least 0, or left out.
    l1_ratio : float, default 0.5
        The share ρ of the 1-norm in the penalty; scikit-learn's `l1_ratio`. 1 is the lasso, 0 is
        ridge regression with half of this λ. Must be a number at least 0 and at most 1.
    fit_intercept : bool, default True
        Whether there is an intercept, which is not penalised.
    standardize : bool or None, default None
        Whether each feature is divided by its standard deviation σ before it is penalised, and the
        square norm by that of the target, so that units do not matter: the penalty is then `λ (ρ
        ‖σβ‖₁ + (1 − ρ) / (2 σ_y) ‖σβ‖²)` (for ρ = 0 without the `σ_y`). The coefficients are those
        of the features as given. Left out, it is done where the penalty is chosen by cross-
        validation, and not where `regularization` is given.
    positive : bool, default False
        Whether coefficients must not be negative.
    max_iter : int, default 100000
        The largest number of passes over the coefficients, for each penalty. Must be an integer
        from 1 to 1000000000.
    tol : float, default 1e-06
        The duality gap to reach, as a share of `Σ w (y − ȳ)² / 2W`, the objective of no
        coefficients. scikit-learn's `tol` is a share of twice that; its default of 1e-4 is 2e-4
        here. Must be a number at least 0 and at most 1.
    folds : int or splitter or pairs of indices, default 5
        Folds of the cross-validation. Must be an integer from 2 to 1000. Or a splitter of scikit-
        learn, or pairs of training and test indices, that put each sample into the test set of one
        fold.
    n_lambdas : int, default 100
        Penalties on the path of the cross-validation, from the smallest that makes all coefficients
        0 down to a thousandth of it, or further where the error still falls there. Must be an
        integer from 1 to 10000.
    lambdas : list[float] or None, default None
        The penalties that cross-validation chooses from, instead of `n_lambdas` of its own. Must be
        a list of finite numbers at least 0, or left out.
    rule : {"min", "one_se"}, default 'min'
        The rule by which cross-validation chooses the penalty.
        - "min": The one with the least error on held-out folds.
        - "one_se": The largest whose error is within one standard error of the least: fewer
          features at little loss.
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
    warm_start : bool, default False
        Whether another `fit` starts from the coefficients of the last one, where it has as many: it
        then takes fewer iterations to the same solution. A fit that chooses its penalty starts
        anew.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    coef_
        Coefficients, features (targets × features, if y has columns); none of a kernel.
    intercept_
        The intercept.
    n_features_in_
        Number of features, or columns of the frame, seen in `fit`.
    feature_names_in_
        Their names, if `fit` got a data frame.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.linear import ElasticNet
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = ElasticNet().fit(X, X @ [2.0, -1.0] + 3.0)
    >>> model.predict([[1.0, 1.0]]).shape
    (1,)
    """

    _kind = "elasticnet"

    def __init__(
        self,
        *,
        regularization: float | None = None,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        standardize: bool | None = None,
        positive: bool = False,
        max_iter: int = 100000,
        tol: float = 1e-06,
        folds: int | Any = 5,
        n_lambdas: int = 100,
        lambdas: list[float] | None = None,
        rule: Literal["min", "one_se"] = 'min',
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.regularization = regularization
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.positive = positive
        self.max_iter = max_iter
        self.tol = tol
        self.folds = folds
        self.n_lambdas = n_lambdas
        self.lambdas = lambdas
        self.rule = rule
        self.random_state = random_state
        self.missing = missing
        self.warm_start = warm_start
        self.verbose = verbose


class Logistic(Classifier):
    """Logistic regression: the probability of each class from a linear score.

    Of two classes, the second has the probability `1 / (1 + exp(−s))` with the score `s = b + x·w`;
    of more, classes have scores of their own and probabilities in proportion to `exp(s)`. Minimises

    `(1 / W) Σ w_i (−log p(class of i)) + λ (ρ ‖w‖₁ + (1 − ρ)/2 ‖w‖²)`

    with weights `w_i` that add up to `W`; intercepts are not penalised. scikit-learn's `C` is
    `1 / (W λ)`.

    Solvers: `newton` uses the whole Hessian for two classes and up to 1,000 features (`n d²`
    operations a step, some six steps), and products with it by conjugate gradients otherwise;
    `lbfgs` needs gradients alone, and many more steps where features are of unlike size;
    `coordinate` is Newton's method with coordinate descent inside, for an L1 penalty (of two classes;
    of more, accelerated proximal gradients); `saga` takes a step for each sample, `O(nnz)` for a pass
    over all, for very many samples of features of like size. The result does not depend on the
    number of threads.

    Without a penalty there is no finite optimum if a plane separates the classes, or separates all
    samples but those on it. Every solver tests this at its solution, and the report says so. (A plane with
    samples on it may be missed on very large data, and among more than two classes.) Of more classes the
    coefficients of a feature add up to 0 without an L1 penalty: the same number more for every class
    changes no probability. Probabilities are those of the model; where it fits badly, look at the calibration curve of
    the report.

    `adversarial` learns against perturbations of the features (adversarial training): of two classes each margin is lowered by
    `ε ‖u∘w‖*`, the most that a perturbation within ε can do, with the units `u` of the features and the dual norm; nothing has to be
    attacked, and the problem stays convex. Of more classes this is done for each pair, an upper bound of the worst loss. Images
    may be perturbed beyond the range of pixels here. The solver is accelerated proximal gradients with Newton steps at the end
    (L-BFGS of more than two classes).

    References: Lin, Weng, Keerthi: Trust region Newton method for large-scale logistic regression,
    2008. Friedman, Hastie, Tibshirani: Regularization paths for generalized linear models via
    coordinate descent, 2010. Defazio, Bach, Lacoste-Julien: SAGA: a fast incremental gradient method
    with support for non-strongly convex composite objectives, 2014.

    Parameters
    ----------
    regularization : float, default 0.001
        Strength λ of the penalty. Must be a finite number at least 0.
    l1_ratio : float, default 0.0
        The share ρ of the penalty that is L1: 0 keeps all features, 1 drops those that do not help.
        Must be a number at least 0 and at most 1.
    fit_intercept : bool, default True
        Whether there is an intercept.
    standardize : bool, default False
        Whether the penalty sees features divided by their standard deviation. The coefficients are
        for the features as they are, either way.
    class_weight : {"balanced", None} or dict of class to weight, default None
        Whether classes count by their samples, or all equally.
        - None: A class weighs as much as its samples.
        - "balanced": All classes the same: samples of rare ones count more.
    solver : {"auto", "newton", "lbfgs", "coordinate", "saga"}, default 'auto'
        The solver.
        - "auto": `coordinate` with an L1 penalty, else `newton`.
        - "newton": Newton's method.
        - "lbfgs": Limited-memory BFGS; without an L1 penalty only.
        - "coordinate": Newton's method with coordinate descent inside.
        - "saga": Steps by one sample at a time, with the last gradient of every other.
    tol : float, default 1e-06
        The fit ends when the gradient (with an L1 penalty: the smallest subgradient) is below this
        share of the gradient at 0. Must be a number at least 0 and at most 1.
    max_iter : int, default 1000
        Iterations at most; of `saga`, passes over the samples. Must be an integer from 1 to
        1000000.
    adversarial : float, default 0.0
        Radius ε of perturbations to learn against: of images in units of pixels from 0 to 1, of
        tables in standard deviations of the features; 0 for none. The worst perturbation of a
        linear score is known exactly. Must be a finite number at least 0.
    adversarial_norm : {"linf", "l2"}, default 'linf'
        Norm of these perturbations.
        - "linf": The largest change of a feature.
        - "l2": The root of the sum of squared changes.
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
    warm_start : bool, default False
        Whether another `fit` starts from the coefficients of the last one, where it has as many: it
        then takes fewer iterations to the same solution.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    classes_
        The classes.
    coef_
        Coefficients, 1 × features for two classes, else classes × features; none of a kernel.
    intercept_
        The intercepts.
    n_features_in_
        Number of features, or columns of the frame, seen in `fit`.
    feature_names_in_
        Their names, if `fit` got a data frame.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.linear import Logistic
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Logistic().fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    >>> model.predict([[2.0, 0.0]])
    array(['yes'], dtype='<U3')
    """

    _kind = "logistic"

    def __init__(
        self,
        *,
        regularization: float = 0.001,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        standardize: bool = False,
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        solver: Literal["auto", "newton", "lbfgs", "coordinate", "saga"] = 'auto',
        tol: float = 1e-06,
        max_iter: int = 1000,
        adversarial: float = 0.0,
        adversarial_norm: Literal["linf", "l2"] = 'linf',
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.regularization = regularization
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.adversarial = adversarial
        self.adversarial_norm = adversarial_norm
        self.random_state = random_state
        self.missing = missing
        self.warm_start = warm_start
        self.verbose = verbose


class Svm(SupportVectorClassifier):
    """Support vector machines: classes by the widest margin, linear or with a kernel.

    Two classes `y = ±1` are separated by the sign of `f(x) = w·x + b`, and

    `½‖w‖² + C Σ_i s_i ℓ(y_i f(x_i))`

    is minimised, with the weight `s_i` of a sample and the loss `ℓ(m) = max(0, 1 − m)`
    (`hinge`) or its square (`squared_hinge`). Samples whose margin `m` is not above 1 are the
    support vectors; `1 − m` is their slack. More classes are separated each from the rest, all at
    once (`crammer_singer`), or, with a kernel, in pairs that vote.

    The intercept is not penalised, unless `penalize_intercept` asks for it: then the objective is
    that of LIBLINEAR and `LinearSVC`, with `½b²` more. `crammer_singer` always penalises it.

    Linear machines take Newton steps in the primal (`primal`): with squared hinge each costs
    `O(a d²)` for `a` samples whose margin crossed 1 since the last, and `d³/6`; from 1024 features
    on, conjugate gradients of `O(nnz)` each. Hinge is smoothed around dual coefficients that follow
    (the method of multipliers), and `a` counts samples near their margin. With fewer samples than
    features both work in the space of the samples, after `O(n² d)` for its products. With many
    samples and many features one sample after another is visited in the dual (`dual`), `O(nnz)` for
    a pass over all. `subgradient` takes stochastic steps in the primal (Pegasos): quick to a rough
    answer, slow to an exact one. Kernel machines move two dual coefficients at a time (sequential
    minimal optimisation), `O(n)` for a step and `O(nnz)` for a row of the kernel matrix that memory
    no longer holds. The penalty `l1` visits one feature after another, `O(nnz)` for a pass.

    `adversarial` learns against perturbations of the features (adversarial training): a perturbation within the radius ε lowers
    a margin by `ε ‖u∘w‖*` at most, with the units `u` of the features and the dual norm, and each machine takes that off every
    margin: exact, and still convex. For linear machines with squared hinge, each class against the rest; solved by
    accelerated proximal gradients with Newton steps at the end.

    Features are brought to unit length inside, so that only `C` times their squared length says how
    hard a problem is; large costs are approached from smaller ones.

    The report ends with a certificate. Of linear machines it is the gap between the primal and the
    dual objective, as a share of the primal one: the objective is at most so far from the best. Of
    kernel machines it is the largest violation of the conditions of optimality; the gap is in the
    notes. The result does not depend on the number of threads.

    Margins are not probabilities: `probability` learns them from held-out margins, five more fits.
    If probabilities are what matters, use logistic regression.

    References: Cortes, Vapnik: Support-vector networks, 1995. Hsieh et al.: A dual coordinate descent
    method for large-scale linear SVM, 2008. Keerthi, DeCoste: A modified finite Newton method for
    fast solution of large scale linear SVMs, 2005. Fan, Chen, Lin: Working set selection using
    second order information, 2005. Crammer, Singer: On the algorithmic implementation of multiclass
    kernel-based vector machines, 2001. Platt: Probabilistic outputs for support vector machines, 1999.

    Parameters
    ----------
    c : float, default 1.0
        The cost C of the losses against the width of the margin; more fits the samples closer. From
        a cost on that depends on the data the solution no longer changes: that of separable classes
        has no slack. 1.7e308 stands for infinity. Must be a finite number greater than 0. Infinity
        is taken as the largest finite number.
    loss : {"auto", "hinge", "squared_hinge"}, default 'auto'
        The loss of a margin below 1.
        - "auto": Squared hinge for linear machines, hinge for kernel machines.
        - "hinge": `1 − m`: fewer support vectors.
        - "squared_hinge": `(1 − m)²`: smooth, and faster to solve.
    penalty : {"l2", "l1"}, default 'l2'
        The penalty on the coefficients of a linear machine.
        - "l2": `½‖w‖²`: the widest margin.
        - "l1": `‖w‖₁`: few features. Squared hinge loss, by coordinate descent over the features.
    kernel : {"linear", "rbf", "polynomial", "sigmoid", "precomputed"} or function of two lists of samples, default 'linear'
        The kernel: a similarity of two samples. A function is called with samples and the samples
        of training, and gives their kernel values, a row for each sample: the machine is then
        fitted as `precomputed`, and keeps the samples.
        - "linear": `x·y`: a linear machine, with coefficients.
        - "rbf": `exp(−γ‖x − y‖²)`.
        - "polynomial": `(γ x·y + c₀)^degree`.
        - "sigmoid": `tanh(γ x·y + c₀)`. Not positive semidefinite: what is found is a local
          optimum.
        - "precomputed": The features are kernel values: of training between all samples, of a
          prediction between each sample and all samples of training, in their order.
    gamma : float or None, default None
        The γ of the kernels. Left out, it is 1 / (features × variance of all their values); of
        `rbf` with `standardize` 1 / the number of features that are not constant. Must be a finite
        number greater than 0, or left out.
    degree : int, default 3
        The degree of the polynomial kernel. Must be an integer from 1 to 100.
    coef0 : float, default 0.0
        The c₀ of the polynomial and sigmoid kernels; 0 leaves out all but the highest powers. Must
        be a finite number.
    multi_class : {"one_vs_rest", "crammer_singer"}, default 'one_vs_rest'
        How linear machines separate more than two classes. Kernel machines compare them in pairs.
        - "one_vs_rest": A machine for each class against the rest.
        - "crammer_singer": One machine for all: the true class is to score 1 more than any other.
          Hinge loss, by the dual; the intercepts are penalised.
    class_weight : {"balanced", None} or dict of class to weight, default None
        Weights of the classes, multiplied with the weights of the samples.
        - None: A class weighs as much as its samples.
        - "balanced": All classes the same: samples of rare ones count more.
    fit_intercept : bool, default True
        Whether there is an intercept b. Kernel machines always have one.
    penalize_intercept : bool, default False
        Whether the intercept of a linear machine is penalised like a coefficient, as LIBLINEAR
        does.
    standardize : bool, default False
        Whether features are divided by their standard deviation, so that the penalty treats them
        alike. The coefficients are for the features as they were given in any case.
    probability : bool, default False
        Whether to learn probabilities, from the margins of samples left out of five more fits.
    adversarial : float, default 0.0
        Radius ε of perturbations to learn against, of linear machines: of images in units of pixels
        from 0 to 1, of tables in standard deviations of the features; 0 for none. The worst
        perturbation is known exactly. Must be a finite number at least 0.
    adversarial_norm : {"linf", "l2"}, default 'linf'
        Norm of these perturbations.
        - "linf": The largest change of a feature.
        - "l2": The root of the sum of squared changes.
    cache : int, default 200
        Memory for rows of the kernel matrix, in MiB. Must be an integer from 1 to 1000000.
    solver : {"auto", "primal", "dual", "subgradient"}, default 'auto'
        The solver of a linear machine.
        - "auto": The primal if there are up to 1024 features, or samples and a million values; else
          the dual.
        - "primal": Newton steps in the primal; losses that are not squared by the method of
          multipliers.
        - "dual": One sample after another in the dual.
        - "subgradient": Stochastic subgradients in the primal.
    tol : float or None, default None
        Linear: end when the gap to the dual is below this share of the objective, by default 1e-6.
        Kernels: when no condition of optimality is violated by more than this, by default 1e-3.
        Must be a finite number at least 0, or left out.
    max_iter : int, default 10000
        Iterations at most: Newton steps, or passes over the samples; with a kernel as many steps as
        there are samples, or 1000, count as one. Must be an integer from 1 to 1000000000.
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
    decision_function_shape : {"ovr", "ovo"}, default 'ovr'
        What `decision_function` gives for more than two classes.
        - "ovr": a score for each class.
        - "ovo": a score for each pair of classes; of kernel machines, which tell pairs apart.
    warm_start : bool, default False
        Whether another `fit` starts from the coefficients of the last one, where it has as many: it
        then takes fewer iterations to the same solution. Kernel machines, `crammer_singer` and the
        penalty `l1` start anew.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    classes_
        The classes.
    coef_
        Coefficients, 1 × features for two classes, else classes × features; none of a kernel.
    intercept_
        The intercepts.
    n_features_in_
        Number of features, or columns of the frame, seen in `fit`.
    feature_names_in_
        Their names, if `fit` got a data frame.
    support_
        Of a kernel: which samples of training are support vectors, class after class.
    support_vectors_
        Of a kernel: the support vectors in that order, in the units of the features.
    n_support_
        Of a kernel: the number of support vectors of each class.
    dual_coef_
        Of a kernel: their coefficients, (classes − 1) × support vectors, a row for each of the
        other classes.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.linear import Svm
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Svm().fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    >>> model.predict([[2.0, 0.0]])
    array(['yes'], dtype='<U3')
    """

    _kind = "svm"

    def __init__(
        self,
        *,
        c: float = 1.0,
        loss: Literal["auto", "hinge", "squared_hinge"] = 'auto',
        penalty: Literal["l2", "l1"] = 'l2',
        kernel: Literal["linear", "rbf", "polynomial", "sigmoid", "precomputed"] | Callable[[Any, Any], Any] = 'linear',
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        multi_class: Literal["one_vs_rest", "crammer_singer"] = 'one_vs_rest',
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        standardize: bool = False,
        probability: bool = False,
        adversarial: float = 0.0,
        adversarial_norm: Literal["linf", "l2"] = 'linf',
        cache: int = 200,
        solver: Literal["auto", "primal", "dual", "subgradient"] = 'auto',
        tol: float | None = None,
        max_iter: int = 10000,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        decision_function_shape: Literal["ovr", "ovo"] = 'ovr',
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.c = c
        self.loss = loss
        self.penalty = penalty
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.standardize = standardize
        self.probability = probability
        self.adversarial = adversarial
        self.adversarial_norm = adversarial_norm
        self.cache = cache
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.missing = missing
        self.decision_function_shape = decision_function_shape
        self.warm_start = warm_start
        self.verbose = verbose


class Svr(SupportVectorRegressor):
    """Support vector regression: numbers by a tube that most samples lie in, linear or with a kernel.

    `½‖w‖² + C Σ_i s_i ℓ(y_i − f(x_i))` is minimised, for `f(x) = w·x + b`, the weight
    `s_i` of a sample, and the loss `ℓ(e) = max(0, |e| − ε)` or its square. Errors below ε cost
    nothing; the loss of larger ones is linear, unless squared, so that outliers have little influence.
    Samples on the tube or outside are the support vectors. Several targets have a machine each.

    Solvers and certificates are those of `svm`: Newton steps in the primal, one
    sample after another in the dual, pairs of samples for kernels. The intercept is not penalised
    unless `penalize_intercept` asks for it. The result does not depend on the number of threads.

    For an estimate with standard errors, or the mean instead of something close to the median, use
    linear regression.

    References: Smola, Schölkopf: A tutorial on support vector regression, 2004. Ho, Lin: Large-scale
    linear support vector regression, 2012.

    Parameters
    ----------
    c : float or None, default None
        The cost C of the losses against the flatness of the function, for the target in its own
        units. Left out, it is the standard deviation of the target, or 1 if the loss is squared:
        what C = 1 means for a target of deviation 1, so that the unit of the target does not
        matter. Must be a finite number greater than 0, or left out. Infinity is taken as the
        largest finite number.
    epsilon : float or None, default None
        Errors up to this cost nothing. In the units of the target. Left out, it is a tenth of the
        standard deviation of the target. Must be a finite number at least 0, or left out.
    loss : {"insensitive", "squared_insensitive"}, default 'insensitive'
        The loss of an error beyond ε.
        - "insensitive": The part beyond ε: outliers have no more influence than other samples
          outside the tube.
        - "squared_insensitive": The square of that part: smooth, and faster to solve.
    kernel : {"linear", "rbf", "polynomial", "sigmoid", "precomputed"} or function of two lists of samples, default 'linear'
        The kernel: a similarity of two samples. A function is called with samples and the samples
        of training, and gives their kernel values, a row for each sample: the machine is then
        fitted as `precomputed`, and keeps the samples.
        - "linear": `x·y`: a linear machine, with coefficients.
        - "rbf": `exp(−γ‖x − y‖²)`.
        - "polynomial": `(γ x·y + c₀)^degree`.
        - "sigmoid": `tanh(γ x·y + c₀)`. Not positive semidefinite: what is found is a local
          optimum.
        - "precomputed": The features are kernel values: of training between all samples, of a
          prediction between each sample and all samples of training, in their order.
    gamma : float or None, default None
        The γ of the kernels. Left out, it is 1 / (features × variance of all their values); of
        `rbf` with `standardize` 1 / the number of features that are not constant. Must be a finite
        number greater than 0, or left out.
    degree : int, default 3
        The degree of the polynomial kernel. Must be an integer from 1 to 100.
    coef0 : float, default 0.0
        The c₀ of the polynomial and sigmoid kernels; 0 leaves out all but the highest powers. Must
        be a finite number.
    fit_intercept : bool, default True
        Whether there is an intercept b. Kernel machines always have one.
    penalize_intercept : bool, default False
        Whether the intercept of a linear machine is penalised like a coefficient, as LIBLINEAR
        does.
    standardize : bool, default False
        Whether features are divided by their standard deviation, so that the penalty treats them
        alike. The coefficients are for the features as they were given in any case.
    cache : int, default 200
        Memory for rows of the kernel matrix, in MiB. Must be an integer from 1 to 1000000.
    solver : {"auto", "primal", "dual", "subgradient"}, default 'auto'
        The solver of a linear machine.
        - "auto": The primal if there are up to 1024 features, or samples and a million values; else
          the dual.
        - "primal": Newton steps in the primal; losses that are not squared by the method of
          multipliers.
        - "dual": One sample after another in the dual.
        - "subgradient": Stochastic subgradients in the primal.
    tol : float or None, default None
        Linear: end when the gap to the dual is below this share of the objective, by default 1e-6.
        Kernels: when no condition of optimality is violated by more than this, in the units of the
        target; by default about 1e-3 of its standard deviation. Must be a finite number at least 0,
        or left out.
    max_iter : int, default 10000
        Iterations at most: Newton steps, or passes over the samples; with a kernel as many steps as
        there are samples, or 1000, count as one. Must be an integer from 1 to 1000000000.
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
    warm_start : bool, default False
        Whether another `fit` starts from the coefficients of the last one, where it has as many: it
        then takes fewer iterations to the same solution. Kernel machines start anew.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    coef_
        Coefficients, features (targets × features, if y has columns); none of a kernel.
    intercept_
        The intercept.
    n_features_in_
        Number of features, or columns of the frame, seen in `fit`.
    feature_names_in_
        Their names, if `fit` got a data frame.
    support_
        Of a kernel: which samples of training are support vectors, ascending.
    support_vectors_
        Of a kernel: the support vectors in that order, in the units of the features.
    n_support_
        Of a kernel: their number, as an array of one.
    dual_coef_
        Of a kernel: their coefficients, targets × support vectors.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.linear import Svr
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Svr().fit(X, X @ [2.0, -1.0] + 3.0)
    >>> model.predict([[1.0, 1.0]]).shape
    (1,)
    """

    _kind = "svr"

    def __init__(
        self,
        *,
        c: float | None = None,
        epsilon: float | None = None,
        loss: Literal["insensitive", "squared_insensitive"] = 'insensitive',
        kernel: Literal["linear", "rbf", "polynomial", "sigmoid", "precomputed"] | Callable[[Any, Any], Any] = 'linear',
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        standardize: bool = False,
        cache: int = 200,
        solver: Literal["auto", "primal", "dual", "subgradient"] = 'auto',
        tol: float | None = None,
        max_iter: int = 10000,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.c = c
        self.epsilon = epsilon
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.standardize = standardize
        self.cache = cache
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.missing = missing
        self.warm_start = warm_start
        self.verbose = verbose


class Constant(Regressor):
    """The mean of the target: predicts the same number for every sample.

    `ŷ = Σ w y / Σ w`, which minimises `Σ w (y − ŷ)²` over all constants; of several targets, the mean of each.
    Its R² is 0 on the data it was fitted to, so a regression that does not beat it has learned nothing.
    scikit-learn's `DummyRegressor`. The features are not looked at; missing or useless ones do no harm.

    Use it as the baseline of a regression, and `majority` as that of a classification. `gradus compare` takes both.

    Parameters
    ----------
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
    coef_
        Coefficients, features (targets × features, if y has columns); none of a kernel.
    intercept_
        The intercept.
    n_features_in_
        Number of features, or columns of the frame, seen in `fit`.
    feature_names_in_
        Their names, if `fit` got a data frame.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.linear import Constant
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Constant().fit(X, X @ [2.0, -1.0] + 3.0)
    >>> model.predict([[1.0, 1.0]]).shape
    (1,)
    """

    _kind = "constant"
    _is_baseline = True

    def __init__(
        self,
        *,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        verbose: int = 0,
    ) -> None:
        self.missing = missing
        self.verbose = verbose


class Majority(Classifier):
    """The most frequent class: predicts the same class for every sample, with the shares of the classes as probabilities.

    The probability of a class is its share of the weight, which minimises the log loss over all constants. A
    classification that does not beat it has learned nothing: where nine of ten samples are of one class, an
    accuracy of .9 is no merit. scikit-learn's `DummyClassifier`. The features are not looked at.

    Use it as the baseline of a classification, and `constant` as that of a regression. `gradus compare` takes both.

    Parameters
    ----------
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
    classes_
        The classes.
    coef_
        Coefficients, 1 × features for two classes, else classes × features; none of a kernel.
    intercept_
        The intercepts.
    n_features_in_
        Number of features, or columns of the frame, seen in `fit`.
    feature_names_in_
        Their names, if `fit` got a data frame.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.linear import Majority
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Majority().fit(X, np.repeat(["yes", "no"], [45, 15]))
    >>> model.predict([[2.0, 0.0]])
    array(['yes'], dtype='<U3')
    """

    _kind = "majority"
    _is_baseline = True

    def __init__(
        self,
        *,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        verbose: int = 0,
    ) -> None:
        self.missing = missing
        self.verbose = verbose
