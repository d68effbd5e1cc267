"""Neural networks.

Written by python/generate.py from the definitions in crates/gradus-nn: change those.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gradus._features import Classifier, Regressor

__all__ = [
    "Mlp",
    "MlpRegressor",
]


class Mlp(Classifier):
    """Multi-layer perceptron: a network that predicts classes from features.

    Layer after layer computes `h ← f(W h + b)` with an activation function `f`; the last one gives a logit for each class, and
    the softmax of them is the probability. The fit minimises the cross-entropy by AdamW over batches, whose gradients come from
    back-propagation. A tenth of the samples is held out (unless held-out data is given), and the epoch with the
    least log loss on it is kept.

    Features are brought to the same scale by their quartiles, and wild values are drawn in, so that units and outliers do not
    matter. A model of few samples (some hundreds) is as a rule no better than `logistic` or `svm`, which are
    faster; compare them with `gradus compare`.

    Samples may have weights. Cost of an epoch: six operations for each weight and sample. The result does not depend on the number
    of threads, nor on the order of the samples.

    Reference: Rumelhart, Hinton, Williams: Learning representations by back-propagating errors, 1986; Loshchilov, Hutter:
    Decoupled weight decay regularization, 2019; for the scaling, Holzmüller, Grinsztajn, Steinwart: Better by default, 2024.

    Parameters
    ----------
    hidden : list[int], default (256, 256)
        Number of units of each hidden layer; none makes a linear model. Must be a list of integers
        from 1 to 65536.
    activation : {"identity", "sigmoid", "tanh", "relu", "gelu", "step"}, default 'relu'
        Activation function of the hidden layers.
        - "identity": The input itself: the network is linear.
        - "sigmoid": `1 / (1 + exp(−x))`.
        - "tanh": The hyperbolic tangent.
        - "relu": `max(x, 0)`.
        - "gelu": `x Φ(x)` with the distribution function Φ of the normal distribution, exactly.
        - "step": 1 where the input is positive, else 0. Its gradient is 0 everywhere, so that
          layers below it cannot learn: for networks whose weights are given.
    norm : {"batch", "layer", None}, default None
        Normalisation before the activation of each hidden layer.
        - None: None.
        - "batch": Of each feature over a batch.
        - "layer": Of the features of each sample.
    dropout : float, default 0.1
        Probability with which an output of a hidden layer is set to 0 in training. Must be a number
        at least 0 and at most 0.95.
    optimizer : {"adam", "sgd"}, default 'adam'
        How a gradient becomes a step.
        - "adam": Adam with decoupled weight decay (AdamW): β₁ = 0.9, β₂ = 0.999, ε = 1e-8.
        - "sgd": Stochastic gradient descent with Nesterov's momentum of 0.9.
    learning_rate : float or None, default None
        Length of a step at its largest. Left out, the default of the model for its optimizer. Must
        be a number at least 0.000000001 and at most 10, or left out.
    schedule : {"cosine", "constant"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
    warm_up : float, default 0.05
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    batch_size : int or None, default None
        Units (samples, images, texts) whose gradient makes a step. Left out, it is chosen by their
        number. Must be an integer from 1 to 1000000, or left out.
    weight_decay : float, default 0.01
        Weight decay λ: a step of length η also multiplies weights by `1 − η λ`; not biases, nor
        weights of normalisations. Must be a number at least 0 and at most 10.
    clip_norm : float, default 1.0
        Largest norm of the gradient; a longer one is shortened to it. 0 turns this off. Must be a
        number at least 0 and at most 1000000.
    average : float, default 0.99
        Share of the moving average of the weights that stays with each step: 0.999 averages about
        the last 1,000 steps, and the average is the model. 0 turns this off. Must be a number at
        least 0 and at most 0.99999.
    class_weight : {"balanced", None} or dict of class to weight, default None
        Whether classes count by their samples, or all equally.
        - None: As much as its samples weigh.
        - "balanced": All classes the same: samples of rare ones count more.
    adversarial : float, default 0.0
        Radius of perturbations to learn against: each batch is changed by the worst of them that
        gradient steps find. Of images in units of pixels from 0 to 1, of tables in standard
        deviations of the features; 0 for none. Costs a pass forward and back for each step. Must be
        a finite number at least 0.
    adversarial_norm : {"linf", "l2"}, default 'linf'
        Norm of these perturbations.
        - "linf": The largest change of a feature.
        - "l2": The root of the sum of squared changes.
    adversarial_steps : int, default 7
        Gradient steps that look for a perturbation. More steps find worse ones and take longer in
        proportion. Must be an integer from 1 to 1000.
    trades : float, default 0.0
        Learn from the samples as they are, with this weight on the distance between the outputs at
        samples and at perturbed ones (TRADES), which trades accuracy for robustness; 0 learns from
        perturbed samples alone. Must be a number at least 0 and at most 1000.
    max_iter : int or None, default None
        Number of epochs: passes over the data (for each random start). Left out, it is chosen by
        the amount of data. Must be an integer from 1 to 1000000, or left out.
    patience : int, default 0
        Stop when the held-out score has not improved for so many epochs; 0 turns that off. Must be
        an integer from 0 to 1000000.
    restarts : int, default 1
        Number of random starts; the best is kept. Must be an integer from 1 to 1000.
    validation_fraction : float, default 0.1
        Share of the data that is held out to choose the epoch that is kept, where no held-out data
        is given; 0 learns from all of it and keeps the last epoch. At least 100 samples are held
        out, but no more than a fifth; fewer than 100 are all learned from. Must be a number at
        least 0 and at most 0.5.
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
    >>> from gradus.nn import Mlp
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Mlp().fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    >>> model.predict([[2.0, 0.0]])
    array(['yes'], dtype='<U3')
    """

    _kind = "mlp"

    def __init__(
        self,
        *,
        hidden: list[int] | tuple[int, ...] = (256, 256),
        activation: Literal["identity", "sigmoid", "tanh", "relu", "gelu", "step"] = 'relu',
        norm: Literal["batch", "layer"] | None = None,
        dropout: float = 0.1,
        optimizer: Literal["adam", "sgd"] = 'adam',
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant"] = 'cosine',
        warm_up: float = 0.05,
        batch_size: int | None = None,
        weight_decay: float = 0.01,
        clip_norm: float = 1.0,
        average: float = 0.99,
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        adversarial: float = 0.0,
        adversarial_norm: Literal["linf", "l2"] = 'linf',
        adversarial_steps: int = 7,
        trades: float = 0.0,
        max_iter: int | None = None,
        patience: int = 0,
        restarts: int = 1,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.norm = norm
        self.dropout = dropout
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.warm_up = warm_up
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.average = average
        self.class_weight = class_weight
        self.adversarial = adversarial
        self.adversarial_norm = adversarial_norm
        self.adversarial_steps = adversarial_steps
        self.trades = trades
        self.max_iter = max_iter
        self.patience = patience
        self.restarts = restarts
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.missing = missing
        self.warm_start = warm_start
        self.verbose = verbose


class MlpRegressor(Regressor):
    """Multi-layer perceptron for numbers: a network that predicts one target or several from features.

    The layers are those of `mlp`, with an output for each target. The fit minimises half the squared error in units of the
    deviation of each target, which is brought to mean 0 and variance 1, by AdamW over batches. A tenth of the samples is held out
    (unless held-out data is given), and the epoch with the least root mean square error on it is kept.

    Everything else is as for `mlp`. Predictions are in the units of the targets.

    Parameters
    ----------
    hidden : list[int], default (256, 256)
        Number of units of each hidden layer; none makes a linear model. Must be a list of integers
        from 1 to 65536.
    activation : {"identity", "sigmoid", "tanh", "relu", "gelu", "step"}, default 'relu'
        Activation function of the hidden layers.
        - "identity": The input itself: the network is linear.
        - "sigmoid": `1 / (1 + exp(−x))`.
        - "tanh": The hyperbolic tangent.
        - "relu": `max(x, 0)`.
        - "gelu": `x Φ(x)` with the distribution function Φ of the normal distribution, exactly.
        - "step": 1 where the input is positive, else 0. Its gradient is 0 everywhere, so that
          layers below it cannot learn: for networks whose weights are given.
    norm : {"batch", "layer", None}, default None
        Normalisation before the activation of each hidden layer.
        - None: None.
        - "batch": Of each feature over a batch.
        - "layer": Of the features of each sample.
    dropout : float, default 0.1
        Probability with which an output of a hidden layer is set to 0 in training. Must be a number
        at least 0 and at most 0.95.
    optimizer : {"adam", "sgd"}, default 'adam'
        How a gradient becomes a step.
        - "adam": Adam with decoupled weight decay (AdamW): β₁ = 0.9, β₂ = 0.999, ε = 1e-8.
        - "sgd": Stochastic gradient descent with Nesterov's momentum of 0.9.
    learning_rate : float or None, default None
        Length of a step at its largest. Left out, the default of the model for its optimizer. Must
        be a number at least 0.000000001 and at most 10, or left out.
    schedule : {"cosine", "constant"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
    warm_up : float, default 0.05
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    batch_size : int or None, default None
        Units (samples, images, texts) whose gradient makes a step. Left out, it is chosen by their
        number. Must be an integer from 1 to 1000000, or left out.
    weight_decay : float, default 0.01
        Weight decay λ: a step of length η also multiplies weights by `1 − η λ`; not biases, nor
        weights of normalisations. Must be a number at least 0 and at most 10.
    clip_norm : float, default 1.0
        Largest norm of the gradient; a longer one is shortened to it. 0 turns this off. Must be a
        number at least 0 and at most 1000000.
    average : float, default 0.99
        Share of the moving average of the weights that stays with each step: 0.999 averages about
        the last 1,000 steps, and the average is the model. 0 turns this off. Must be a number at
        least 0 and at most 0.99999.
    max_iter : int or None, default None
        Number of epochs: passes over the data (for each random start). Left out, it is chosen by
        the amount of data. Must be an integer from 1 to 1000000, or left out.
    patience : int, default 0
        Stop when the held-out score has not improved for so many epochs; 0 turns that off. Must be
        an integer from 0 to 1000000.
    restarts : int, default 1
        Number of random starts; the best is kept. Must be an integer from 1 to 1000.
    validation_fraction : float, default 0.1
        Share of the data that is held out to choose the epoch that is kept, where no held-out data
        is given; 0 learns from all of it and keeps the last epoch. At least 100 samples are held
        out, but no more than a fifth; fewer than 100 are all learned from. Must be a number at
        least 0 and at most 0.5.
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
    >>> from gradus.nn import MlpRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = MlpRegressor().fit(X, X @ [2.0, -1.0] + 3.0)
    >>> model.predict([[1.0, 1.0]]).shape
    (1,)
    """

    _kind = "mlpregressor"

    def __init__(
        self,
        *,
        hidden: list[int] | tuple[int, ...] = (256, 256),
        activation: Literal["identity", "sigmoid", "tanh", "relu", "gelu", "step"] = 'relu',
        norm: Literal["batch", "layer"] | None = None,
        dropout: float = 0.1,
        optimizer: Literal["adam", "sgd"] = 'adam',
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant"] = 'cosine',
        warm_up: float = 0.05,
        batch_size: int | None = None,
        weight_decay: float = 0.01,
        clip_norm: float = 1.0,
        average: float = 0.99,
        max_iter: int | None = None,
        patience: int = 0,
        restarts: int = 1,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.norm = norm
        self.dropout = dropout
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.warm_up = warm_up
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.average = average
        self.max_iter = max_iter
        self.patience = patience
        self.restarts = restarts
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.missing = missing
        self.warm_start = warm_start
        self.verbose = verbose
