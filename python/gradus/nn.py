"""Neural networks.

Written by python/generate.py from the definitions in crates/gradus-nn: change those.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gradus._classify import NetworkTextClassifier
from gradus._generative import NetworkClassDensity, NetworkCodes, NetworkDensity, NetworkGenerator
from gradus._images import ImageClassifier, PatchClassifier
from gradus._language import LanguageModel, Translator
from gradus._networks import NetworkAutoencoder, NetworkClassifier, NetworkRegressor

__all__ = [
    "Autoencoder",
    "Cnn",
    "Diffusion",
    "Gan",
    "Lm",
    "Mlp",
    "MlpRegressor",
    "PixelCnn",
    "Seq2Seq",
    "TextClassifier",
    "Vae",
    "Vit",
]


class Mlp(NetworkClassifier):
    """Multi-layer perceptron: a network that predicts classes from features.

    Layer after layer computes `h ← f(W h + b)` with an activation function `f`; the last one gives a logit for each class, and
    the softmax of them is the probability. The fit minimises the cross-entropy by AdamW over batches, whose gradients come from
    back-propagation. A tenth of the samples is held out (unless held-out data is given) to find the number of epochs
    with the least log loss, and then the network learns anew from all samples for so many.

    Features are brought to the same scale by their quartiles, and wild values are drawn in, so that units and outliers do not
    matter. A model of few samples (some hundreds) is as a rule no better than `logistic` or `svm`, which are
    faster; compare them with `gradus compare`.

    Samples may have weights. Cost of an epoch: six operations for each weight and sample. The result does not depend on the number
    of threads, nor on the order of the samples.

    Reference: Rumelhart, Hinton, Williams: Learning representations by back-propagating errors, 1986; Loshchilov, Hutter:
    Decoupled weight decay regularization, 2019; for the scaling, Holzmüller, Grinsztajn, Steinwart: Better by default, 2024.

    Parameters
    ----------
    hidden : list[int], default (128, 128)
        Number of units of each hidden layer; none makes a linear model. Must be a list of integers
        from 1 to 65536.
    activation : {"identity", "sigmoid", "tanh", "relu", "gelu", "silu", "step"}, default 'relu'
        Activation function of the hidden layers.
        - "identity": The input itself: the network is linear.
        - "sigmoid": `1 / (1 + exp(−x))`.
        - "tanh": The hyperbolic tangent.
        - "relu": `max(x, 0)`.
        - "gelu": `x Φ(x)` with the distribution function Φ of the normal distribution, exactly.
        - "silu": `x / (1 + exp(−x))`, also called Swish.
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
    schedule : {"cosine", "constant", "range"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
        - "range": Rises by the same factor with each step, from a ten-millionth of the learning
          rate (left out, 10): the learning-rate range test, as `gradus lab lr` draws it. Every
          iteration of the report is one step, `max_iter` of them (left out, 300), and the fit ends
          when the loss has grown to four times its least.
    warm_up : float, default 0.05
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    batch_size : int or None, default None
        Units (samples, images, texts) whose gradient makes a step. Left out, it is chosen by their
        number. Must be an integer from 1 to 1000000, or left out.
    weight_decay : float, default 0.1
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
    patience : int, default 20
        Stop when the held-out score has not improved for so many epochs; 0 turns that off. Must be
        an integer from 0 to 1000000.
    restarts : int, default 1
        Number of random starts; the best is kept. Must be an integer from 1 to 1000.
    validation_fraction : float, default 0.1
        Share of the data that is held out to choose the epoch that is kept, where no held-out data
        is given; 0 learns from all of it and keeps the last epoch. At least 100 samples are held
        out, but no more than a fifth; fewer than 100 are all learned from. Must be a number at
        least 0 and at most 0.5.
    refit : bool, default True
        Whether the network learns anew from all samples, where `validation_fraction` of them was
        held out: for as many epochs as were best.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    device : {"cpu", "gpu"}, default 'cpu'
        Where the weights are trained. The model that comes of it predicts on the processor.
        - "cpu": The processor: the same seed gives the same bits on any number of threads
        - "gpu": A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`;
          sums on it have no fixed order, so that two fits differ by rounding
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
        hidden: list[int] | tuple[int, ...] = (128, 128),
        activation: Literal["identity", "sigmoid", "tanh", "relu", "gelu", "silu", "step"] = 'relu',
        norm: Literal["batch", "layer"] | None = None,
        dropout: float = 0.1,
        optimizer: Literal["adam", "sgd"] = 'adam',
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant", "range"] = 'cosine',
        warm_up: float = 0.05,
        batch_size: int | None = None,
        weight_decay: float = 0.1,
        clip_norm: float = 1.0,
        average: float = 0.99,
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        adversarial: float = 0.0,
        adversarial_norm: Literal["linf", "l2"] = 'linf',
        adversarial_steps: int = 7,
        trades: float = 0.0,
        max_iter: int | None = None,
        patience: int = 20,
        restarts: int = 1,
        validation_fraction: float = 0.1,
        refit: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        device: Literal["cpu", "gpu"] = 'cpu',
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
        self.refit = refit
        self.random_state = random_state
        self.device = device
        self.missing = missing
        self.warm_start = warm_start
        self.verbose = verbose


class Autoencoder(NetworkAutoencoder):
    """Autoencoder: a network that makes a code of few numbers of a sample, and the sample of the code.

    The encoder `g` has hidden layers between the features and the code, the decoder `h` the same in the other order, and the fit
    minimises the squared error of the reconstruction, `½ E‖z − h(g(z))‖² / D` over the `D` standardised features `z`, by AdamW over
    batches. A code is linear in the last hidden layer: any number. A tenth of the samples is held out (unless held-out data is
    given), and the epoch with the least error on it is kept; the error is in standard deviations, so that 1 is that of the mean.

    Features of tables are brought to mean 0 and variance 1; pixels are centred and scaled by their mean and deviation over all
    pixels of a channel. `transform` gives codes, `inverse_transform` the samples of codes. Decoding and encoding a code gives
    nearly the code, not exactly. Without hidden layers the codes span the space of the first principal components: `pca` is exact
    and faster there, and to be beaten by this one where data lie near a curved surface.

    Cost of an epoch: six operations for each weight and sample (`convolutional`: and place of a window). The result depends neither
    on the number of threads nor on the order of the samples.

    Reference: Hinton, Salakhutdinov: Reducing the dimensionality of data with neural networks, 2006.

    Parameters
    ----------
    n_components : int or None, default None
        Number of components: the length of a code. Left out, a quarter of the features, from 2 to
        32. Must be an integer from 1 to 100000, or left out.
    architecture : {"dense", "convolutional"}, default 'dense'
        Kind of the layers.
        - "dense": Layers of units, each connected to all of the layer before: for tables, and for
          small images.
        - "convolutional": Convolutions, between which images are halved, and doubled on the way
          back: for images.
    hidden : list[int], default (256, 128)
        Number of units of each hidden layer of the encoder (`dense`); the decoder has them in the
        other order. Must be a list of integers from 1 to 65536.
    channels : list[int], default (16, 32)
        Number of channels of each convolution of the encoder (`convolutional`), behind which images
        are halved. Must be a list of integers from 1 to 8192.
    kernel : int, default 3
        Height and width of the windows of the convolutions: an odd number. Must be an integer from
        1 to 15.
    activation : {"identity", "sigmoid", "tanh", "relu", "gelu", "silu", "step"}, default 'relu'
        Activation function of the hidden layers.
        - "identity": The input itself: the network is linear.
        - "sigmoid": `1 / (1 + exp(−x))`.
        - "tanh": The hyperbolic tangent.
        - "relu": `max(x, 0)`.
        - "gelu": `x Φ(x)` with the distribution function Φ of the normal distribution, exactly.
        - "silu": `x / (1 + exp(−x))`, also called Swish.
        - "step": 1 where the input is positive, else 0. Its gradient is 0 everywhere, so that
          layers below it cannot learn: for networks whose weights are given.
    optimizer : {"adam", "sgd"}, default 'adam'
        How a gradient becomes a step.
        - "adam": Adam with decoupled weight decay (AdamW): β₁ = 0.9, β₂ = 0.999, ε = 1e-8.
        - "sgd": Stochastic gradient descent with Nesterov's momentum of 0.9.
    learning_rate : float or None, default None
        Length of a step at its largest. Left out, the default of the model for its optimizer. Must
        be a number at least 0.000000001 and at most 10, or left out.
    schedule : {"cosine", "constant", "range"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
        - "range": Rises by the same factor with each step, from a ten-millionth of the learning
          rate (left out, 10): the learning-rate range test, as `gradus lab lr` draws it. Every
          iteration of the report is one step, `max_iter` of them (left out, 300), and the fit ends
          when the loss has grown to four times its least.
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
    device : {"cpu", "gpu"}, default 'cpu'
        Where the weights are trained. The model that comes of it predicts on the processor.
        - "cpu": The processor: the same seed gives the same bits on any number of threads
        - "gpu": A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`;
          sums on it have no fixed order, so that two fits differ by rounding
    image_shape : tuple[int, ...] or None, default None
        Height and width, and the number of channels where it is not 1, of images that are given as
        rows. Left out, rows are square images: grey, or in three colours. Must be two or three
        numbers.
    missing : {"refuse", "mean", "median", "category"}, default 'refuse'
        What stands for a missing value (NaN, None) in the features.
        - "refuse": None: a missing value is refused.
        - "mean": The mean of a number, the most frequent word of a category.
        - "median": The median of a number, the most frequent word of a category.
        - "category": A category of its own: of words a level, of numbers the mean and a second
          feature that is 1 where the value is missing. In columns where training has no missing
          value, the mean and the encoding of an unseen word.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
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
    >>> from gradus.nn import Autoencoder
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> model = Autoencoder().fit(X)
    >>> model.transform(X).shape[0]
    60
    """

    _kind = "autoencoder"

    def __init__(
        self,
        *,
        n_components: int | None = None,
        architecture: Literal["dense", "convolutional"] = 'dense',
        hidden: list[int] | tuple[int, ...] = (256, 128),
        channels: list[int] | tuple[int, ...] = (16, 32),
        kernel: int = 3,
        activation: Literal["identity", "sigmoid", "tanh", "relu", "gelu", "silu", "step"] = 'relu',
        optimizer: Literal["adam", "sgd"] = 'adam',
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant", "range"] = 'cosine',
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
        device: Literal["cpu", "gpu"] = 'cpu',
        image_shape: tuple[int, ...] | None = None,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.architecture = architecture
        self.hidden = hidden
        self.channels = channels
        self.kernel = kernel
        self.activation = activation
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
        self.device = device
        self.image_shape = image_shape
        self.missing = missing
        self.warm_start = warm_start
        self.verbose = verbose


class Vae(NetworkCodes):
    """Variational autoencoder: a model with codes, `p(x) = ∫ p(x | z) p(z) dz` with a standard normal prior of the code `z` and a network from codes to features.

    An encoder gives the mean and the variance of the posterior of each number of the code, and the fit minimises the negative
    evidence lower bound, `E −log p(x | z) + β KL(q(z | x) ‖ p(z))`, with one code drawn for each sample (reparametrisation), by AdamW
    over batches. Both terms are reported after each epoch. `gradus evaluate` gives the importance-weighted bound
    (IWAE) with `test_samples` codes for each sample: a lower bound on the log likelihood, and named as such. A tenth of the samples
    is held out (unless held-out data is given), and the epoch with the least bound on it is kept.

    The decoder is Bernoulli for images with pixels from 0 to 1, and Gaussian for tables, whose columns are standardised, each with a
    variance that is learned. `transform` gives the means of codes, `inverse_transform` the means of the features of codes. Samples of
    images are the means of the decoder, without the noise of each pixel; samples of tables have it.

    Cost of an epoch: six operations for each weight and sample (`convolutional`: and place of a window); of the bound in
    `evaluate` two for each weight of the decoder, sample and code. The result depends neither on the number of threads nor on the
    order of the samples. `pixelcnn` has exact likelihoods, and better ones of images; it has no codes.

    References: Kingma, Welling: Auto-encoding variational Bayes, 2014. Burda, Grosse, Salakhutdinov: Importance weighted autoencoders, 2016.
    Higgins et al.: beta-VAE, 2017.

    Parameters
    ----------
    n_components : int or None, default None
        Number of components: the length of a code. Left out, a quarter of the features, from 2 to
        32, and no more than there are. Must be an integer from 1 to 100000, or left out.
    architecture : {"dense", "convolutional"}, default 'dense'
        Kind of the layers.
        - "dense": Layers of units, each connected to all of the layer before: for tables, and for
          small images.
        - "convolutional": Convolutions, between which images are halved, and doubled on the way
          back: for images.
    hidden : list[int], default (512, 512)
        Number of units of each hidden layer of the encoder (`dense`); the decoder has them in the
        other order. Must be a list of integers from 1 to 65536.
    channels : list[int], default (32, 64)
        Number of channels of each convolution of the encoder (`convolutional`), behind which images
        are halved. Must be a list of integers from 1 to 8192.
    kernel : int, default 3
        Height and width of the windows of the convolutions: an odd number. Must be an integer from
        1 to 15.
    decoder : {"auto", "bernoulli", "gaussian"}, default 'auto'
        Distribution of a feature given the code.
        - "auto": Bernoulli for images with pixels from 0 to 1, Gaussian for other features.
        - "bernoulli": Binary: 1 with a probability that the decoder gives. For features from 0 to
          1.
        - "gaussian": Normal about a mean that the decoder gives. Of images all pixels have one
          variance, of tables each column its own; they are learned.
    binarize : {"threshold", "static", "dynamic", None}, default None
        How grey pixels become binary, with a Bernoulli decoder.
        - None: Pixels as they are: the brightness is the probability of a 1, and the loss its mean
          over binary images.
        - "threshold": A pixel is 1 if it is brighter than ½.
        - "static": A pixel is 1 with a probability of its brightness, drawn once for each image by
          the seed: the binarised MNIST of the literature is made so.
        - "dynamic": The same, drawn anew in each epoch; data to be scored is drawn once.
    beta : float, default 1.0
        Weight β of the divergence of the posteriors from the prior. 1 is the bound; more gives
        codes that are more independent of each other and worse reconstructions. Must be a number at
        least 0 and at most 1000.
    train_samples : int, default 1
        Number of codes for each sample and step: with more than 1 the importance-weighted bound is
        what is learned from, which is tighter and costs as many times a pass of the decoder. Must
        be an integer from 1 to 1000.
    test_samples : int, default 500
        Number of codes for each sample in the bound on the log likelihood (`evaluate`). More make
        it tighter. Must be an integer from 1 to 100000.
    activation : {"identity", "sigmoid", "tanh", "relu", "gelu", "silu", "step"}, default 'gelu'
        Activation function of the hidden layers.
        - "identity": The input itself: the network is linear.
        - "sigmoid": `1 / (1 + exp(−x))`.
        - "tanh": The hyperbolic tangent.
        - "relu": `max(x, 0)`.
        - "gelu": `x Φ(x)` with the distribution function Φ of the normal distribution, exactly.
        - "silu": `x / (1 + exp(−x))`, also called Swish.
        - "step": 1 where the input is positive, else 0. Its gradient is 0 everywhere, so that
          layers below it cannot learn: for networks whose weights are given.
    optimizer : {"adam", "sgd"}, default 'adam'
        How a gradient becomes a step.
        - "adam": Adam with decoupled weight decay (AdamW): β₁ = 0.9, β₂ = 0.999, ε = 1e-8.
        - "sgd": Stochastic gradient descent with Nesterov's momentum of 0.9.
    learning_rate : float or None, default None
        Length of a step at its largest. Left out, the default of the model for its optimizer. Must
        be a number at least 0.000000001 and at most 10, or left out.
    schedule : {"cosine", "constant", "range"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
        - "range": Rises by the same factor with each step, from a ten-millionth of the learning
          rate (left out, 10): the learning-rate range test, as `gradus lab lr` draws it. Every
          iteration of the report is one step, `max_iter` of them (left out, 300), and the fit ends
          when the loss has grown to four times its least.
    warm_up : float, default 0.02
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    batch_size : int or None, default None
        Units (samples, images, texts) whose gradient makes a step. Left out, it is chosen by their
        number. Must be an integer from 1 to 1000000, or left out.
    weight_decay : float, default 0.0
        Weight decay λ: a step of length η also multiplies weights by `1 − η λ`; not biases, nor
        weights of normalisations. Must be a number at least 0 and at most 10.
    clip_norm : float, default 200.0
        Largest norm of the gradient; a longer one is shortened to it. 0 turns this off. Must be a
        number at least 0 and at most 1000000.
    average : float, default 0.999
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
    device : {"cpu", "gpu"}, default 'cpu'
        Where the weights are trained. The model that comes of it predicts on the processor.
        - "cpu": The processor: the same seed gives the same bits on any number of threads
        - "gpu": A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`;
          sums on it have no fixed order, so that two fits differ by rounding
    image_shape : tuple[int, ...] or None, default None
        Height and width, and the number of channels where it is not 1, of images that are given as
        rows. Left out, rows are square images: grey, or in three colours. Must be two or three
        numbers.
    missing : {"refuse", "mean", "median", "category"}, default 'refuse'
        What stands for a missing value (NaN, None) in the features.
        - "refuse": None: a missing value is refused.
        - "mean": The mean of a number, the most frequent word of a category.
        - "median": The median of a number, the most frequent word of a category.
        - "category": A category of its own: of words a level, of numbers the mean and a second
          feature that is 1 where the value is missing. In columns where training has no missing
          value, the mean and the encoding of an unseen word.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
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
    >>> from gradus.nn import Vae
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> model = Vae(hidden=(8,), n_components=2, max_iter=5, random_state=0).fit(X)
    >>> model.transform(X).shape, model.sample(3, random_state=0).shape
    ((60, 2), (3, 4))
    """

    _kind = "vae"

    def __init__(
        self,
        *,
        n_components: int | None = None,
        architecture: Literal["dense", "convolutional"] = 'dense',
        hidden: list[int] | tuple[int, ...] = (512, 512),
        channels: list[int] | tuple[int, ...] = (32, 64),
        kernel: int = 3,
        decoder: Literal["auto", "bernoulli", "gaussian"] = 'auto',
        binarize: Literal["threshold", "static", "dynamic"] | None = None,
        beta: float = 1.0,
        train_samples: int = 1,
        test_samples: int = 500,
        activation: Literal["identity", "sigmoid", "tanh", "relu", "gelu", "silu", "step"] = 'gelu',
        optimizer: Literal["adam", "sgd"] = 'adam',
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant", "range"] = 'cosine',
        warm_up: float = 0.02,
        batch_size: int | None = None,
        weight_decay: float = 0.0,
        clip_norm: float = 200.0,
        average: float = 0.999,
        max_iter: int | None = None,
        patience: int = 0,
        restarts: int = 1,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        device: Literal["cpu", "gpu"] = 'cpu',
        image_shape: tuple[int, ...] | None = None,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.architecture = architecture
        self.hidden = hidden
        self.channels = channels
        self.kernel = kernel
        self.decoder = decoder
        self.binarize = binarize
        self.beta = beta
        self.train_samples = train_samples
        self.test_samples = test_samples
        self.activation = activation
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
        self.device = device
        self.image_shape = image_shape
        self.missing = missing
        self.warm_start = warm_start
        self.verbose = verbose


class PixelCnn(NetworkDensity):
    """PixelCNN: an autoregressive model of images, `p(x) = Π p(xᵢ | x₁ … xᵢ₋₁)` over the pixels row by row, and within a pixel over red, green and blue.

    A softmax over the levels of a pixel (2 of binary images, 256 of bytes) comes from two stacks of gated convolutions: the
    vertical stack sees all rows above, the horizontal stack the pixels to the left, so that there is no blind spot. The fit minimises
    the cross-entropy, in bits per dimension, by AdamW over batches. The log probability is exact: `gradus evaluate` gives nats
    per image and bits per dimension. A tenth of the samples is held out (unless held-out data is given), and the epoch with the
    least loss on it is kept. Sampling draws pixel after pixel and keeps the activations of earlier ones; `gradus sample` also completes
    images that are begun.

    Of a table the same model is a masked dense network (MADE) over the standardised columns, with a mixture of logistic
    distributions for each column given those before it. It is meant for few columns. `gmm` is faster where clusters are ellipses.

    Cost of an epoch: about `6 n P · depth · (2 k² C² + 16 C²)` operations for images of `P` pixels, with `C` channels and windows of
    `k`. The result depends neither on the number of threads nor on the order of the samples.

    References: van den Oord, Kalchbrenner, Kavukcuoglu: Pixel recurrent neural networks, 2016. Van den Oord et al.: Conditional image
    generation with PixelCNN decoders, 2016. Germain et al.: MADE, 2015.

    Parameters
    ----------
    levels : int or None, default None
        Number of levels of a pixel: 2 for binary images, 256 for bytes. Left out, 2 if each pixel
        is black or white, else 256. Must be an integer from 2 to 256, or left out.
    binarize : {"threshold", "static", "dynamic"}, default 'threshold'
        How grey images become binary, with 2 levels.
        - "threshold": A pixel is 1 if it is brighter than ½.
        - "static": A pixel is 1 with a probability of its brightness, drawn once for each image by
          the seed: the binarised MNIST of the literature is made so.
        - "dynamic": The same, drawn anew in each epoch; data to be scored is drawn once.
    channels : int, default 32
        Number of channels of the layers, of images. Must be an integer from 1 to 4096.
    depth : int, default 8
        Number of layers, of images. Must be an integer from 1 to 256.
    kernel : int, default 3
        Height and width of the windows of all layers but the first: an odd number. Must be an
        integer from 1 to 31.
    first_kernel : int, default 7
        Height and width of the windows of the first layer: an odd number. Must be an integer from 1
        to 31.
    hidden : list[int], default (128, 128)
        Number of units of each hidden layer, of tables. Must be a list of integers from 1 to 65536.
    components : int, default 16
        Number of logistic distributions in the mixture of each column, of tables. Must be an
        integer from 1 to 1000.
    dropout : float, default 0.0
        Probability with which an output of a hidden layer is set to 0 in training. Must be a number
        at least 0 and at most 0.95.
    optimizer : {"adam", "sgd"}, default 'adam'
        How a gradient becomes a step.
        - "adam": Adam with decoupled weight decay (AdamW): β₁ = 0.9, β₂ = 0.999, ε = 1e-8.
        - "sgd": Stochastic gradient descent with Nesterov's momentum of 0.9.
    learning_rate : float or None, default None
        Length of a step at its largest. Left out, the default of the model for its optimizer. Must
        be a number at least 0.000000001 and at most 10, or left out.
    schedule : {"cosine", "constant", "range"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
        - "range": Rises by the same factor with each step, from a ten-millionth of the learning
          rate (left out, 10): the learning-rate range test, as `gradus lab lr` draws it. Every
          iteration of the report is one step, `max_iter` of them (left out, 300), and the fit ends
          when the loss has grown to four times its least.
    warm_up : float, default 0.05
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    batch_size : int or None, default None
        Units (samples, images, texts) whose gradient makes a step. Left out, it is chosen by their
        number. Must be an integer from 1 to 1000000, or left out.
    micro_batch : int or None, default None
        Units whose gradient is computed at once: the gradients of the parts of a batch are added,
        which needs less memory. Left out, the whole batch. Must be an integer from 1 to 1000000, or
        left out.
    weight_decay : float, default 0.0
        Weight decay λ: a step of length η also multiplies weights by `1 − η λ`; not biases, nor
        weights of normalisations. Must be a number at least 0 and at most 10.
    clip_norm : float, default 1.0
        Largest norm of the gradient; a longer one is shortened to it. 0 turns this off. Must be a
        number at least 0 and at most 1000000.
    average : float, default 0.995
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
    device : {"cpu", "gpu"}, default 'cpu'
        Where the weights are trained. The model that comes of it predicts on the processor.
        - "cpu": The processor: the same seed gives the same bits on any number of threads
        - "gpu": A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`;
          sums on it have no fixed order, so that two fits differ by rounding
    image_shape : tuple[int, ...] or None, default None
        Height and width, and the number of channels where it is not 1, of images that are given as
        rows. Left out, rows are square images: grey, or in three colours. Must be two or three
        numbers.
    missing : {"refuse", "mean", "median", "category"}, default 'refuse'
        What stands for a missing value (NaN, None) in the features.
        - "refuse": None: a missing value is refused.
        - "mean": The mean of a number, the most frequent word of a category.
        - "median": The median of a number, the most frequent word of a category.
        - "category": A category of its own: of words a level, of numbers the mean and a second
          feature that is 1 where the value is missing. In columns where training has no missing
          value, the mean and the encoding of an unseen word.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
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
    >>> from gradus.nn import PixelCnn
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = PixelCnn(hidden=(8,), max_iter=5, random_state=0).fit(X)
    >>> model.score_samples(X).shape, model.sample(3, random_state=0).shape
    ((60,), (3, 2))
    """

    _kind = "pixelcnn"

    def __init__(
        self,
        *,
        levels: int | None = None,
        binarize: Literal["threshold", "static", "dynamic"] = 'threshold',
        channels: int = 32,
        depth: int = 8,
        kernel: int = 3,
        first_kernel: int = 7,
        hidden: list[int] | tuple[int, ...] = (128, 128),
        components: int = 16,
        dropout: float = 0.0,
        optimizer: Literal["adam", "sgd"] = 'adam',
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant", "range"] = 'cosine',
        warm_up: float = 0.05,
        batch_size: int | None = None,
        micro_batch: int | None = None,
        weight_decay: float = 0.0,
        clip_norm: float = 1.0,
        average: float = 0.995,
        max_iter: int | None = None,
        patience: int = 0,
        restarts: int = 1,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        device: Literal["cpu", "gpu"] = 'cpu',
        image_shape: tuple[int, ...] | None = None,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.levels = levels
        self.binarize = binarize
        self.channels = channels
        self.depth = depth
        self.kernel = kernel
        self.first_kernel = first_kernel
        self.hidden = hidden
        self.components = components
        self.dropout = dropout
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.warm_up = warm_up
        self.batch_size = batch_size
        self.micro_batch = micro_batch
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.average = average
        self.max_iter = max_iter
        self.patience = patience
        self.restarts = restarts
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device
        self.image_shape = image_shape
        self.missing = missing
        self.warm_start = warm_start
        self.verbose = verbose


class MlpRegressor(NetworkRegressor):
    """Multi-layer perceptron for numbers: a network that predicts one target or several from features.

    The layers are those of `mlp`, with an output for each target. The fit minimises half the squared error in units of the
    deviation of each target, which is brought to mean 0 and variance 1, by AdamW over batches. A tenth of the samples is held out
    (unless held-out data is given) to find the number of epochs with the least root mean square error, and then the network learns
    anew from all samples for so many.

    Everything else is as for `mlp`. Predictions are in the units of the targets.

    Parameters
    ----------
    hidden : list[int], default (128, 128)
        Number of units of each hidden layer; none makes a linear model. Must be a list of integers
        from 1 to 65536.
    activation : {"identity", "sigmoid", "tanh", "relu", "gelu", "silu", "step"}, default 'relu'
        Activation function of the hidden layers.
        - "identity": The input itself: the network is linear.
        - "sigmoid": `1 / (1 + exp(−x))`.
        - "tanh": The hyperbolic tangent.
        - "relu": `max(x, 0)`.
        - "gelu": `x Φ(x)` with the distribution function Φ of the normal distribution, exactly.
        - "silu": `x / (1 + exp(−x))`, also called Swish.
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
    schedule : {"cosine", "constant", "range"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
        - "range": Rises by the same factor with each step, from a ten-millionth of the learning
          rate (left out, 10): the learning-rate range test, as `gradus lab lr` draws it. Every
          iteration of the report is one step, `max_iter` of them (left out, 300), and the fit ends
          when the loss has grown to four times its least.
    warm_up : float, default 0.05
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    batch_size : int or None, default None
        Units (samples, images, texts) whose gradient makes a step. Left out, it is chosen by their
        number. Must be an integer from 1 to 1000000, or left out.
    weight_decay : float, default 0.1
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
    patience : int, default 20
        Stop when the held-out score has not improved for so many epochs; 0 turns that off. Must be
        an integer from 0 to 1000000.
    restarts : int, default 1
        Number of random starts; the best is kept. Must be an integer from 1 to 1000.
    validation_fraction : float, default 0.1
        Share of the data that is held out to choose the epoch that is kept, where no held-out data
        is given; 0 learns from all of it and keeps the last epoch. At least 100 samples are held
        out, but no more than a fifth; fewer than 100 are all learned from. Must be a number at
        least 0 and at most 0.5.
    refit : bool, default True
        Whether the network learns anew from all samples, where `validation_fraction` of them was
        held out: for as many epochs as were best.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    device : {"cpu", "gpu"}, default 'cpu'
        Where the weights are trained. The model that comes of it predicts on the processor.
        - "cpu": The processor: the same seed gives the same bits on any number of threads
        - "gpu": A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`;
          sums on it have no fixed order, so that two fits differ by rounding
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
        hidden: list[int] | tuple[int, ...] = (128, 128),
        activation: Literal["identity", "sigmoid", "tanh", "relu", "gelu", "silu", "step"] = 'relu',
        norm: Literal["batch", "layer"] | None = None,
        dropout: float = 0.1,
        optimizer: Literal["adam", "sgd"] = 'adam',
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant", "range"] = 'cosine',
        warm_up: float = 0.05,
        batch_size: int | None = None,
        weight_decay: float = 0.1,
        clip_norm: float = 1.0,
        average: float = 0.99,
        max_iter: int | None = None,
        patience: int = 20,
        restarts: int = 1,
        validation_fraction: float = 0.1,
        refit: bool = True,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        device: Literal["cpu", "gpu"] = 'cpu',
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
        self.refit = refit
        self.random_state = random_state
        self.device = device
        self.missing = missing
        self.warm_start = warm_start
        self.verbose = verbose


class Gan(NetworkGenerator):
    """Generative adversarial network: a generator makes data of random codes, and learns to pass for data before a discriminator.

    The discriminator `D` learns a score that is positive for data and negative for samples, `min E log(1 + exp(−D(x))) +
    E log(1 + exp(D(G(z))))`, and the generator `G` to be taken for data, `min E log(1 + exp(−D(G(z))))` (the non-saturating loss),
    each by a step of Adam (β₁ = 0.5) after the other, on every batch. The moving average of the generator's weights is the model.

    The penalty `γ/2 E‖∇ₓ D(x)‖²` at data (R1) makes the game converge near its solution; without it the players circle, and samples
    may collapse to a few kinds. Its gradient is a central difference of scores along `∇ₓ D`, so that no second derivatives are
    needed; it costs two more passes of the discriminator and a gradient of its inputs. `extragradient` steps along the gradients of
    a place ahead, which damps the circling as well, and costs twice the time. Each epoch measures the share that the discriminator
    tells right and the diversity of samples (the mean distance of samples from each other, as a share of that of data); a fit that
    ends in collapse says so in a note.

    There is no density, so that nothing tells how good the model is but distances between samples and data (`gradus evaluate
    --classifier`) and a look at them; the last epoch is kept. Networks of images are convolutional as those of DCGAN, with group
    normalisation in the generator and none in the discriminator.

    Cost of an epoch: about 20 operations for each weight and sample (`convolutional`: and place of a window). The result depends
    neither on the number of threads nor on the order of the samples.

    References: Goodfellow et al.: Generative adversarial nets, 2014. Radford, Metz, Chintala: Unsupervised representation learning
    with deep convolutional generative adversarial networks, 2016. Mescheder, Geiger, Nowozin: Which training methods for GANs do
    actually converge?, 2018. Gidel et al.: A variational inequality perspective on generative adversarial networks, 2019.

    Parameters
    ----------
    n_components : int or None, default None
        Number of components: the length of a code. Left out, 16 for tables and 64 for images. Must
        be an integer from 1 to 100000, or left out.
    architecture : {"auto", "dense", "convolutional"}, default 'auto'
        Kind of the layers.
        - "auto": Convolutional for images, dense for tables
        - "dense": Layers of units, each connected to all of the layer before: for tables
        - "convolutional": Convolutions, between which images are halved, and doubled by the
          generator: for images
    hidden : list[int], default (128, 128)
        Number of units of each hidden layer of the discriminator (`dense`); the generator has them
        in the other order. Must be a list of integers from 1 to 65536.
    channels : list[int], default (32, 64, 128)
        Number of channels at each size of the images (`convolutional`), which are halved from one
        to the next. Must be a list of integers from 1 to 8192.
    gradient_penalty : float, default 1.0
        Weight γ of the penalty on the squared gradient of scores at data (R1); 0 for none. Must be
        a number at least 0 and at most 1000000.
    extragradient : bool, default False
        Whether steps are taken along the gradients of a place ahead.
    learning_rate : float or None, default None
        Length of a step at its largest. Left out, the default of the model for its optimizer. Must
        be a number at least 0.000000001 and at most 10, or left out.
    schedule : {"cosine", "constant", "range"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
        - "range": Rises by the same factor with each step, from a ten-millionth of the learning
          rate (left out, 10): the learning-rate range test, as `gradus lab lr` draws it. Every
          iteration of the report is one step, `max_iter` of them (left out, 300), and the fit ends
          when the loss has grown to four times its least.
    warm_up : float, default 0.0
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    batch_size : int or None, default None
        Units (samples, images, texts) whose gradient makes a step. Left out, it is chosen by their
        number. Must be an integer from 1 to 1000000, or left out.
    average : float, default 0.999
        Share of the moving average of the weights that stays with each step: 0.999 averages about
        the last 1,000 steps, and the average is the model. 0 turns this off. Must be a number at
        least 0 and at most 0.99999.
    max_iter : int or None, default None
        Number of epochs: passes over the data (for each random start). Left out, it is chosen by
        the amount of data. Must be an integer from 1 to 1000000, or left out.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    device : {"cpu", "gpu"}, default 'cpu'
        Where the weights are trained. The model that comes of it predicts on the processor.
        - "cpu": The processor: the same seed gives the same bits on any number of threads
        - "gpu": A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`;
          sums on it have no fixed order, so that two fits differ by rounding
    image_shape : tuple[int, ...] or None, default None
        Height and width, and the number of channels where it is not 1, of images that are given as
        rows. Left out, rows are square images: grey, or in three colours. Must be two or three
        numbers.
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
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.nn import Gan
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Gan(hidden=(8,), max_iter=5, random_state=0).fit(X)
    >>> model.sample(3, random_state=0).shape
    (3, 2)
    """

    _kind = "gan"

    def __init__(
        self,
        *,
        n_components: int | None = None,
        architecture: Literal["auto", "dense", "convolutional"] = 'auto',
        hidden: list[int] | tuple[int, ...] = (128, 128),
        channels: list[int] | tuple[int, ...] = (32, 64, 128),
        gradient_penalty: float = 1.0,
        extragradient: bool = False,
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant", "range"] = 'cosine',
        warm_up: float = 0.0,
        batch_size: int | None = None,
        average: float = 0.999,
        max_iter: int | None = None,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        device: Literal["cpu", "gpu"] = 'cpu',
        image_shape: tuple[int, ...] | None = None,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.architecture = architecture
        self.hidden = hidden
        self.channels = channels
        self.gradient_penalty = gradient_penalty
        self.extragradient = extragradient
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.warm_up = warm_up
        self.batch_size = batch_size
        self.average = average
        self.max_iter = max_iter
        self.random_state = random_state
        self.device = device
        self.image_shape = image_shape
        self.missing = missing
        self.verbose = verbose


class Diffusion(NetworkClassDensity):
    """Diffusion model (DDPM): a network that sees the data in noise, and so makes data of noise, step by step.

    Noise is added to data in `T` steps, `q(xₜ | x₀) = N(√ᾱₜ x₀, (1 − ᾱₜ) I)`, until nothing else is left. The network learns to say
    what noise there is in a sample, `min E‖ε − ε(xₜ, t)‖²` over all steps, or `v = √ᾱ ε − √(1 − ᾱ) x₀`, which stands for the same; the
    moving average of its weights is the model. To draw, noise goes the way back: by all `T` steps with new noise in each (ancestral
    sampling), or by fewer without (DDIM; 50 by default), which gives nearly as good samples.

    Of samples with classes the model learns to draw from each class, and guidance (classifier-free) draws what is typical of it: a
    tenth of the classes are hidden while the network learns, and a draw goes beyond the prediction with the class, away from that
    without. Features of tables are brought to mean 0 and variance 1, pixels to −1 … 1. `log_density` is the variational bound: of
    images of bytes, and of black and white ones, on the log probability of their pixels, else on the log density. A sample's bound
    is estimated by 32 of its `T` terms.

    Cost of an epoch: six operations for each weight and sample (`unet`: and place of an image). A draw takes a pass of the network
    for each step, and two with guidance. The result depends neither on the number of threads nor on the order of the samples.

    References: Ho, Jain, Abbeel: Denoising diffusion probabilistic models, 2020. Nichol, Dhariwal: Improved denoising diffusion
    probabilistic models, 2021. Song, Meng, Ermon: Denoising diffusion implicit models, 2021. Ho, Salimans: Classifier-free diffusion
    guidance, 2022. Salimans, Ho: Progressive distillation for fast sampling of diffusion models, 2022 (the prediction of v).

    Parameters
    ----------
    architecture : {"auto", "dense", "unet"}, default 'auto'
        Kind of the layers.
        - "auto": A U-Net for images, dense for tables
        - "dense": Residual blocks of units, each connected to all before: for tables
        - "unet": Convolutions down to small images and up again, with shortcuts between images of
          one size: for images
    hidden : list[int], default (128, 128, 128)
        Number of units of each residual block (`dense`); the first is also the width between
        blocks. Must be a list of integers from 1 to 65536.
    channels : list[int], default (32, 64, 128)
        Number of channels at each size of the images (`unet`), which are halved from one to the
        next. Must be a list of integers from 1 to 8192.
    depth : int, default 1
        Number of residual blocks at each size, on the way down and on the way up (`unet`). Must be
        an integer from 1 to 16.
    heads : int, default 4
        Number of heads of the attention between the places of the smallest images (`unet`). Must be
        an integer from 1 to 1024.
    n_steps : int, default 1000
        Number of steps `T` from data to noise. Must be an integer from 2 to 100000.
    noise_schedule : {"cosine", "linear"}, default 'cosine'
        How much noise each step adds.
        - "cosine": `ᾱ = cos²`: noise grows evenly, so that few steps are spent where all is noise.
          Best for small images and for tables.
        - "linear": The variance of the noise of a step grows in a straight line, as in the first
          paper.
    prediction : {"velocity", "noise"}, default 'velocity'
        What the network says of a noisy sample.
        - "velocity": `v = √ᾱ ε − √(1 − ᾱ) x₀`: neither noise nor data alone, so that it means
          something at every step.
        - "noise": The noise `ε`, as in the first paper.
    conditional : bool, default True
        Whether to learn the classes of samples that have some, so that samples of a class can be
        drawn.
    class_dropout : float, default 0.1
        Share of the samples whose class is hidden while the network learns: what guidance needs.
        Must be a number at least 0 and at most 1.
    dropout : float, default 0.0
        Probability with which an output of a hidden layer is set to 0 in training. Must be a number
        at least 0 and at most 0.95.
    optimizer : {"adam", "sgd"}, default 'adam'
        How a gradient becomes a step.
        - "adam": Adam with decoupled weight decay (AdamW): β₁ = 0.9, β₂ = 0.999, ε = 1e-8.
        - "sgd": Stochastic gradient descent with Nesterov's momentum of 0.9.
    learning_rate : float or None, default None
        Length of a step at its largest. Left out, the default of the model for its optimizer. Must
        be a number at least 0.000000001 and at most 10, or left out.
    schedule : {"cosine", "constant", "range"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
        - "range": Rises by the same factor with each step, from a ten-millionth of the learning
          rate (left out, 10): the learning-rate range test, as `gradus lab lr` draws it. Every
          iteration of the report is one step, `max_iter` of them (left out, 300), and the fit ends
          when the loss has grown to four times its least.
    warm_up : float, default 0.05
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    batch_size : int or None, default None
        Units (samples, images, texts) whose gradient makes a step. Left out, it is chosen by their
        number. Must be an integer from 1 to 1000000, or left out.
    micro_batch : int or None, default None
        Units whose gradient is computed at once: the gradients of the parts of a batch are added,
        which needs less memory. Left out, the whole batch. Must be an integer from 1 to 1000000, or
        left out.
    weight_decay : float, default 0.0
        Weight decay λ: a step of length η also multiplies weights by `1 − η λ`; not biases, nor
        weights of normalisations. Must be a number at least 0 and at most 10.
    clip_norm : float, default 1.0
        Largest norm of the gradient; a longer one is shortened to it. 0 turns this off. Must be a
        number at least 0 and at most 1000000.
    average : float, default 0.999
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
    validation_fraction : float, default 0.05
        Share of the data that is held out to choose the epoch that is kept, where no held-out data
        is given; 0 learns from all of it and keeps the last epoch. At least 100 samples are held
        out, but no more than a fifth; fewer than 100 are all learned from. Must be a number at
        least 0 and at most 0.5.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    device : {"cpu", "gpu"}, default 'cpu'
        Where the weights are trained. The model that comes of it predicts on the processor.
        - "cpu": The processor: the same seed gives the same bits on any number of threads
        - "gpu": A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`;
          sums on it have no fixed order, so that two fits differ by rounding
    image_shape : tuple[int, ...] or None, default None
        Height and width, and the number of channels where it is not 1, of images that are given as
        rows. Left out, rows are square images: grey, or in three colours. Must be two or three
        numbers.
    missing : {"refuse", "mean", "median", "category"}, default 'refuse'
        What stands for a missing value (NaN, None) in the features.
        - "refuse": None: a missing value is refused.
        - "mean": The mean of a number, the most frequent word of a category.
        - "median": The median of a number, the most frequent word of a category.
        - "category": A category of its own: of words a level, of numbers the mean and a second
          feature that is 1 where the value is missing. In columns where training has no missing
          value, the mean and the encoding of an unseen word.
    warm_start : bool, default False
        Whether another `fit` starts from the model of the last one, not at random.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    n_features_in_
        Number of features, or columns of the frame, seen in `fit`.
    feature_names_in_
        Their names, if `fit` got a data frame.
    classes_
        The classes, ascending, if `fit` got some.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.nn import Diffusion
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = Diffusion(hidden=(8,), max_iter=5, random_state=0).fit(X, np.where(X[:, 0] > 0, "right", "left"))
    >>> model.sample(3, random_state=0, label="left", steps=10).shape, model.score_samples(X).shape
    ((3, 2), (60,))
    """

    _kind = "diffusion"

    def __init__(
        self,
        *,
        architecture: Literal["auto", "dense", "unet"] = 'auto',
        hidden: list[int] | tuple[int, ...] = (128, 128, 128),
        channels: list[int] | tuple[int, ...] = (32, 64, 128),
        depth: int = 1,
        heads: int = 4,
        n_steps: int = 1000,
        noise_schedule: Literal["cosine", "linear"] = 'cosine',
        prediction: Literal["velocity", "noise"] = 'velocity',
        conditional: bool = True,
        class_dropout: float = 0.1,
        dropout: float = 0.0,
        optimizer: Literal["adam", "sgd"] = 'adam',
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant", "range"] = 'cosine',
        warm_up: float = 0.05,
        batch_size: int | None = None,
        micro_batch: int | None = None,
        weight_decay: float = 0.0,
        clip_norm: float = 1.0,
        average: float = 0.999,
        max_iter: int | None = None,
        patience: int = 0,
        restarts: int = 1,
        validation_fraction: float = 0.05,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        device: Literal["cpu", "gpu"] = 'cpu',
        image_shape: tuple[int, ...] | None = None,
        missing: Literal["refuse", "mean", "median", "category"] = 'refuse',
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.architecture = architecture
        self.hidden = hidden
        self.channels = channels
        self.depth = depth
        self.heads = heads
        self.n_steps = n_steps
        self.noise_schedule = noise_schedule
        self.prediction = prediction
        self.conditional = conditional
        self.class_dropout = class_dropout
        self.dropout = dropout
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.warm_up = warm_up
        self.batch_size = batch_size
        self.micro_batch = micro_batch
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.average = average
        self.max_iter = max_iter
        self.patience = patience
        self.restarts = restarts
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device
        self.image_shape = image_shape
        self.missing = missing
        self.warm_start = warm_start
        self.verbose = verbose


class Cnn(ImageClassifier):
    """Convolutional neural network: classes of images.

    Stages of convolutions, each followed by a normalisation and an activation function, look at ever larger parts of an image:
    between stages 2 × 2 pixels become the largest of them (while both sides have four pixels at least). The mean of each channel
    over what remains goes into a linear layer with a logit for each class. So images of any size, grey or in colour, are taken;
    all must have the size of those of training. The fit minimises the cross-entropy by AdamW over batches of images that are
    shifted at random. A tenth of the images is held out (unless held-out data is given), and the epoch with the least log loss
    on it is kept.

    Pixels are centred and scaled by their mean and deviation over the training images, for each channel. Weights have the names
    and layouts of torchvision's ResNet.

    Cost of an epoch: for each image and convolution, six operations for each weight and place of its window. The result does not
    depend on the number of threads, nor on the order of the images.

    Reference: LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, 1998; He, Zhang, Ren, Sun:
    Deep residual learning for image recognition, 2016; Ioffe, Szegedy: Batch normalization, 2015.

    Parameters
    ----------
    architecture : {"plain", "residual"}, default 'residual'
        Kind of the network.
        - "plain": One convolution after the other, as in VGG.
        - "residual": Blocks of two convolutions whose input is added to their output, as in ResNet.
    channels : list[int], default (32, 64, 128)
        Number of channels of each stage; images are halved between stages. Must be a list of
        integers from 1 to 8192.
    depth : int, default 1
        Number of convolutions (plain) or of blocks of two convolutions (residual) in each stage.
        Must be an integer from 1 to 64.
    kernel : int, default 3
        Height and width of the windows of the convolutions: an odd number. Must be an integer from
        1 to 15.
    augment : {"shift", "shift-flip", None}, default 'shift'
        How images are changed at random while the network learns. The default does not mirror them,
        because digits and letters are others in the mirror.
        - None: Not at all.
        - "shift": Shifted by up to a twelfth of a side; the pixels of the border are repeated.
        - "shift-flip": Shifted, and mirrored left to right with probability ½: for photographs, not
          for digits or letters.
    norm : {"batch", "layer", None}, default 'batch'
        Normalisation before the activation of each hidden layer.
        - None: None.
        - "batch": Of each feature over a batch.
        - "layer": Of the features of each sample.
    activation : {"identity", "sigmoid", "tanh", "relu", "gelu", "silu", "step"}, default 'relu'
        Activation function of the hidden layers.
        - "identity": The input itself: the network is linear.
        - "sigmoid": `1 / (1 + exp(−x))`.
        - "tanh": The hyperbolic tangent.
        - "relu": `max(x, 0)`.
        - "gelu": `x Φ(x)` with the distribution function Φ of the normal distribution, exactly.
        - "silu": `x / (1 + exp(−x))`, also called Swish.
        - "step": 1 where the input is positive, else 0. Its gradient is 0 everywhere, so that
          layers below it cannot learn: for networks whose weights are given.
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
    schedule : {"cosine", "constant", "range"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
        - "range": Rises by the same factor with each step, from a ten-millionth of the learning
          rate (left out, 10): the learning-rate range test, as `gradus lab lr` draws it. Every
          iteration of the report is one step, `max_iter` of them (left out, 300), and the fit ends
          when the loss has grown to four times its least.
    warm_up : float, default 0.1
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    batch_size : int or None, default None
        Units (samples, images, texts) whose gradient makes a step. Left out, it is chosen by their
        number. Must be an integer from 1 to 1000000, or left out.
    micro_batch : int or None, default None
        Units whose gradient is computed at once: the gradients of the parts of a batch are added,
        which needs less memory. Left out, the whole batch. Must be an integer from 1 to 1000000, or
        left out.
    weight_decay : float, default 0.05
        Weight decay λ: a step of length η also multiplies weights by `1 − η λ`; not biases, nor
        weights of normalisations. Must be a number at least 0 and at most 10.
    clip_norm : float, default 1.0
        Largest norm of the gradient; a longer one is shortened to it. 0 turns this off. Must be a
        number at least 0 and at most 1000000.
    average : float, default 0.0
        Share of the moving average of the weights that stays with each step: 0.999 averages about
        the last 1,000 steps, and the average is the model. 0 turns this off. Must be a number at
        least 0 and at most 0.99999.
    class_weight : {"balanced", None}, default None
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
    device : {"cpu", "gpu"}, default 'cpu'
        Where the weights are trained. The model that comes of it predicts on the processor.
        - "cpu": The processor: the same seed gives the same bits on any number of threads
        - "gpu": A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`;
          sums on it have no fixed order, so that two fits differ by rounding
    image_shape : tuple[int, ...] or None, default None
        Height and width, and the number of channels where it is not 1, of images that are given as
        rows. Left out, rows are square images: grey, or in three colours. Must be two or three
        numbers.
    warm_start : bool, default False
        Whether another `fit` starts from the coefficients of the last one, where it has as many: it
        then takes fewer iterations to the same solution.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    classes_
        The classes.
    image_shape_
        Height, width and channels of the images of `fit`.
    n_features_in_
        The number of their numbers.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.nn import Cnn
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["dark", "light"], 40)
    >>> X = rng.integers(0, 100, (80, 8, 8), dtype=np.uint8) + 155 * (y == "light").astype(np.uint8)[:, None, None]
    >>> model = Cnn(channels=(8, 16), max_iter=10).fit(X, y)
    >>> model.predict(X[[0, 79]]).tolist()
    ['dark', 'light']
    """

    _kind = "cnn"

    def __init__(
        self,
        *,
        architecture: Literal["plain", "residual"] = 'residual',
        channels: list[int] | tuple[int, ...] = (32, 64, 128),
        depth: int = 1,
        kernel: int = 3,
        augment: Literal["shift", "shift-flip"] | None = 'shift',
        norm: Literal["batch", "layer"] | None = 'batch',
        activation: Literal["identity", "sigmoid", "tanh", "relu", "gelu", "silu", "step"] = 'relu',
        dropout: float = 0.1,
        optimizer: Literal["adam", "sgd"] = 'adam',
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant", "range"] = 'cosine',
        warm_up: float = 0.1,
        batch_size: int | None = None,
        micro_batch: int | None = None,
        weight_decay: float = 0.05,
        clip_norm: float = 1.0,
        average: float = 0.0,
        class_weight: Literal["balanced"] | None = None,
        adversarial: float = 0.0,
        adversarial_norm: Literal["linf", "l2"] = 'linf',
        adversarial_steps: int = 7,
        trades: float = 0.0,
        max_iter: int | None = None,
        patience: int = 0,
        restarts: int = 1,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        device: Literal["cpu", "gpu"] = 'cpu',
        image_shape: tuple[int, ...] | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.architecture = architecture
        self.channels = channels
        self.depth = depth
        self.kernel = kernel
        self.augment = augment
        self.norm = norm
        self.activation = activation
        self.dropout = dropout
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.warm_up = warm_up
        self.batch_size = batch_size
        self.micro_batch = micro_batch
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
        self.device = device
        self.image_shape = image_shape
        self.warm_start = warm_start
        self.verbose = verbose


class Vit(PatchClassifier):
    """Vision transformer: classes of images by attention between patches.

    An image is cut into square patches; a linear map makes features of each, to which its position is added. A class token joins
    them. In each block every token attends to all others, `x + attention(norm(x))`, and goes through a perceptron of its own,
    `x + perceptron(norm(x))`. A linear layer makes the logits of the classes from the class token. The fit minimises the
    cross-entropy by AdamW over batches of images that are shifted at random. A tenth of the images is held out
    (unless held-out data is given), and the epoch with the least log loss on it is kept.

    The fitted model tells where it looks: its attention maps are drawn over images in its page (`gradus report`). A
    `cnn` as a rule predicts better after less time, unless there are millions of images.

    Cost of an epoch: for each image and patch, six operations for each weight, and as many for each feature and other patch. The
    result does not depend on the number of threads, nor on the order of the images.

    Reference: Dosovitskiy et al.: An image is worth 16x16 words, 2021; for the blocks, Vaswani et al.: Attention is all you
    need, 2017, and Xiong et al.: On layer normalization in the transformer architecture, 2020.

    Parameters
    ----------
    patch : int or None, default None
        Height and width of a patch, in pixels. Left out, an eighth of the smaller side, 2 at least.
        Must be an integer from 1 to 1024, or left out.
    features : int, default 64
        Number of features of a patch; a multiple of the number of heads. Must be an integer from 1
        to 8192.
    depth : int, default 4
        Number of blocks. Must be an integer from 1 to 64.
    heads : int, default 4
        Number of heads of attention in each block. Must be an integer from 1 to 256.
    expansion : int, default 2
        Hidden units of the perceptron in each block, for each feature. Must be an integer from 1 to
        16.
    augment : {"shift", "shift-flip", None}, default 'shift'
        How images are changed at random while the network learns. The default does not mirror them,
        because digits and letters are others in the mirror.
        - None: Not at all.
        - "shift": Shifted by up to a twelfth of a side; the pixels of the border are repeated.
        - "shift-flip": Shifted, and mirrored left to right with probability ½: for photographs, not
          for digits or letters.
    activation : {"identity", "sigmoid", "tanh", "relu", "gelu", "silu", "step"}, default 'gelu'
        Activation function of the hidden layers.
        - "identity": The input itself: the network is linear.
        - "sigmoid": `1 / (1 + exp(−x))`.
        - "tanh": The hyperbolic tangent.
        - "relu": `max(x, 0)`.
        - "gelu": `x Φ(x)` with the distribution function Φ of the normal distribution, exactly.
        - "silu": `x / (1 + exp(−x))`, also called Swish.
        - "step": 1 where the input is positive, else 0. Its gradient is 0 everywhere, so that
          layers below it cannot learn: for networks whose weights are given.
    dropout : float, default 0.0
        Probability with which an output of a hidden layer is set to 0 in training. Must be a number
        at least 0 and at most 0.95.
    optimizer : {"adam", "sgd"}, default 'adam'
        How a gradient becomes a step.
        - "adam": Adam with decoupled weight decay (AdamW): β₁ = 0.9, β₂ = 0.999, ε = 1e-8.
        - "sgd": Stochastic gradient descent with Nesterov's momentum of 0.9.
    learning_rate : float or None, default None
        Length of a step at its largest. Left out, the default of the model for its optimizer. Must
        be a number at least 0.000000001 and at most 10, or left out.
    schedule : {"cosine", "constant", "range"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
        - "range": Rises by the same factor with each step, from a ten-millionth of the learning
          rate (left out, 10): the learning-rate range test, as `gradus lab lr` draws it. Every
          iteration of the report is one step, `max_iter` of them (left out, 300), and the fit ends
          when the loss has grown to four times its least.
    warm_up : float, default 0.1
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    batch_size : int or None, default None
        Units (samples, images, texts) whose gradient makes a step. Left out, it is chosen by their
        number. Must be an integer from 1 to 1000000, or left out.
    micro_batch : int or None, default None
        Units whose gradient is computed at once: the gradients of the parts of a batch are added,
        which needs less memory. Left out, the whole batch. Must be an integer from 1 to 1000000, or
        left out.
    weight_decay : float, default 0.05
        Weight decay λ: a step of length η also multiplies weights by `1 − η λ`; not biases, nor
        weights of normalisations. Must be a number at least 0 and at most 10.
    clip_norm : float, default 1.0
        Largest norm of the gradient; a longer one is shortened to it. 0 turns this off. Must be a
        number at least 0 and at most 1000000.
    average : float, default 0.0
        Share of the moving average of the weights that stays with each step: 0.999 averages about
        the last 1,000 steps, and the average is the model. 0 turns this off. Must be a number at
        least 0 and at most 0.99999.
    class_weight : {"balanced", None}, default None
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
    device : {"cpu", "gpu"}, default 'cpu'
        Where the weights are trained. The model that comes of it predicts on the processor.
        - "cpu": The processor: the same seed gives the same bits on any number of threads
        - "gpu": A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`;
          sums on it have no fixed order, so that two fits differ by rounding
    image_shape : tuple[int, ...] or None, default None
        Height and width, and the number of channels where it is not 1, of images that are given as
        rows. Left out, rows are square images: grey, or in three colours. Must be two or three
        numbers.
    warm_start : bool, default False
        Whether another `fit` starts from the coefficients of the last one, where it has as many: it
        then takes fewer iterations to the same solution.
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    classes_
        The classes.
    image_shape_
        Height, width and channels of the images of `fit`.
    n_features_in_
        The number of their numbers.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> import numpy as np
    >>> from gradus.nn import Vit
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["dark", "light"], 40)
    >>> X = rng.integers(0, 100, (80, 8, 8), dtype=np.uint8) + 155 * (y == "light").astype(np.uint8)[:, None, None]
    >>> model = Vit(features=16, depth=2, max_iter=30).fit(X, y)
    >>> model.predict(X[[0, 79]]).tolist()
    ['dark', 'light']
    >>> model.attention(X[:1]).shape
    (1, 2, 4, 4, 4)
    """

    _kind = "vit"

    def __init__(
        self,
        *,
        patch: int | None = None,
        features: int = 64,
        depth: int = 4,
        heads: int = 4,
        expansion: int = 2,
        augment: Literal["shift", "shift-flip"] | None = 'shift',
        activation: Literal["identity", "sigmoid", "tanh", "relu", "gelu", "silu", "step"] = 'gelu',
        dropout: float = 0.0,
        optimizer: Literal["adam", "sgd"] = 'adam',
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant", "range"] = 'cosine',
        warm_up: float = 0.1,
        batch_size: int | None = None,
        micro_batch: int | None = None,
        weight_decay: float = 0.05,
        clip_norm: float = 1.0,
        average: float = 0.0,
        class_weight: Literal["balanced"] | None = None,
        adversarial: float = 0.0,
        adversarial_norm: Literal["linf", "l2"] = 'linf',
        adversarial_steps: int = 7,
        trades: float = 0.0,
        max_iter: int | None = None,
        patience: int = 0,
        restarts: int = 1,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        device: Literal["cpu", "gpu"] = 'cpu',
        image_shape: tuple[int, ...] | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.patch = patch
        self.features = features
        self.depth = depth
        self.heads = heads
        self.expansion = expansion
        self.augment = augment
        self.activation = activation
        self.dropout = dropout
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.warm_up = warm_up
        self.batch_size = batch_size
        self.micro_batch = micro_batch
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
        self.device = device
        self.image_shape = image_shape
        self.warm_start = warm_start
        self.verbose = verbose


class Lm(LanguageModel):
    """Language model: a transformer that tells how probable each next token of a text is, and writes texts.

    A decoder with pre-norm blocks, causal attention, GELU and learned places, as GPT-2. The fit minimises the cross-entropy of the
    next token by AdamW (β₂ = 0.99) over windows of the text that are drawn at random. Documents stand one after another, with a
    token for the end of each between them. The last tenth of the tokens is held out (unless held-out data is given), and the
    weights with the least loss on it are kept. Losses are in nats per token; their exponential is the perplexity. An
    iteration of the report is `interval` steps; the held-out loss after each is that of a sample of windows, and the one of the
    model that is kept that of all held-out text.

    A file of text is one document, a folder one for each file, and a table one for each row; `--lines` takes each line as one.
    `gradus generate m.gradus --prompt "…"` goes on with a text; keys and values of earlier tokens are kept, so that a token
    costs the same however long the text is. `gradus evaluate` gives loss and perplexity of other texts.

    Cost of a step: about `6 w b c` operations with `w` weights, `b` windows and a context of `c` tokens. The defaults learn the
    style of an author from a megabyte of text in some minutes; facts and long-range sense need models larger by orders
    of magnitude. The result does not depend on the number of threads.

    Reference: Vaswani et al.: Attention is all you need, 2017; Radford et al.: Language models are unsupervised multitask
    learners, 2019.

    Parameters
    ----------
    tokens : {"chars", "bytes", "bpe"}, default 'chars'
        What a token is.
        - "chars": A character of the training text. Other characters are spelled by the halves of
          their bytes.
        - "bytes": A byte.
        - "bpe": A byte, or a frequent piece of a word: pairs of tokens that are frequent in
          training become tokens, again and again.
    vocabulary_size : int, default 1024
        Number of tokens, where they are learned (`bpe`): the 256 bytes, the end of a document, and
        pieces of words. Must be an integer from 257 to 1000000.
    layers : int, default 4
        Number of blocks: attention and a perceptron each. Must be an integer from 1 to 256.
    dimension : int, default 128
        Features of a position, a multiple of `heads`. Must be an integer from 1 to 65536.
    heads : int, default 4
        Number of heads of attention. Must be an integer from 1 to 1024.
    context : int, default 64
        Number of tokens that the model looks back at. Must be an integer from 1 to 1048576.
    tied : bool, default True
        Whether the vectors of tokens also are the weights of the output.
    dropout : float, default 0.0
        Probability with which an output of embeddings, attention and perceptrons is set to 0 in
        training. Must be a number at least 0 and at most 0.95.
    batch_size : int, default 12
        Windows of the text whose gradient makes a step. Must be an integer from 1 to 1000000.
    max_iter : int or None, default None
        Number of steps. Left out, it is chosen by the length of the text. Must be an integer from 1
        to 100000000, or left out.
    interval : int or None, default None
        Steps between two evaluations on held-out text: an iteration of the report. Left out, a
        twentieth of the steps. Must be an integer from 1 to 100000000, or left out.
    micro_batch : int or None, default None
        Units whose gradient is computed at once: the gradients of the parts of a batch are added,
        which needs less memory. Left out, the whole batch. Must be an integer from 1 to 1000000, or
        left out.
    learning_rate : float or None, default None
        Length of a step at its largest. Left out, the default of the model for its optimizer. Must
        be a number at least 0.000000001 and at most 10, or left out.
    schedule : {"cosine", "constant", "range"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
        - "range": Rises by the same factor with each step, from a ten-millionth of the learning
          rate (left out, 10): the learning-rate range test, as `gradus lab lr` draws it. Every
          iteration of the report is one step, `max_iter` of them (left out, 300), and the fit ends
          when the loss has grown to four times its least.
    warm_up : float, default 0.05
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    weight_decay : float, default 0.1
        Weight decay λ: a step of length η also multiplies weights by `1 − η λ`; not biases, nor
        weights of normalisations. Must be a number at least 0 and at most 10.
    clip_norm : float, default 1.0
        Largest norm of the gradient; a longer one is shortened to it. 0 turns this off. Must be a
        number at least 0 and at most 1000000.
    average : float, default 0.0
        Share of the moving average of the weights that stays with each step: 0.999 averages about
        the last 1,000 steps, and the average is the model. 0 turns this off. Must be a number at
        least 0 and at most 0.99999.
    patience : int, default 0
        Stop when the held-out loss has not improved for so many evaluations; 0 turns that off. Must
        be an integer from 0 to 1000000.
    validation_fraction : float, default 0.1
        Share of the tokens, the last ones, that is held out to choose the weights that are kept,
        where no held-out data is given; 0 learns from all of the text and keeps the last weights.
        Must be a number at least 0 and at most 0.5.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    device : {"cpu", "gpu"}, default 'cpu'
        Where the weights are trained. The model that comes of it predicts on the processor.
        - "cpu": The processor: the same seed gives the same bits on any number of threads
        - "gpu": A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`;
          sums on it have no fixed order, so that two fits differ by rounding
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.nn import Lm
    >>> text = "the cat sat on the mat. " * 40
    >>> model = Lm(layers=1, dimension=32, context=16, max_iter=250, learning_rate=0.01).fit(text)
    >>> model.generate("the cat sat", 10, temperature=0)
    ' on the ma'
    >>> model.perplexity(text) < 2
    True
    """

    _kind = "lm"

    def __init__(
        self,
        *,
        tokens: Literal["chars", "bytes", "bpe"] = 'chars',
        vocabulary_size: int = 1024,
        layers: int = 4,
        dimension: int = 128,
        heads: int = 4,
        context: int = 64,
        tied: bool = True,
        dropout: float = 0.0,
        batch_size: int = 12,
        max_iter: int | None = None,
        interval: int | None = None,
        micro_batch: int | None = None,
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant", "range"] = 'cosine',
        warm_up: float = 0.05,
        weight_decay: float = 0.1,
        clip_norm: float = 1.0,
        average: float = 0.0,
        patience: int = 0,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        device: Literal["cpu", "gpu"] = 'cpu',
        verbose: int = 0,
    ) -> None:
        self.tokens = tokens
        self.vocabulary_size = vocabulary_size
        self.layers = layers
        self.dimension = dimension
        self.heads = heads
        self.context = context
        self.tied = tied
        self.dropout = dropout
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.interval = interval
        self.micro_batch = micro_batch
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.warm_up = warm_up
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.average = average
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device
        self.verbose = verbose


class TextClassifier(NetworkTextClassifier):
    """Text classifier: a transformer that predicts the class of a document.

    An encoder with pre-norm blocks, in which every token attends to every other, GELU and learned places, as BERT, but learned
    from the documents alone. The mean over the positions goes through a linear layer to a logit for each class. The fit
    minimises the cross-entropy by AdamW over batches, each time from another half of the tokens of a document, so that no few
    words decide. A tenth of the documents is held out (unless held-out data is given), and the
    epoch with the least log loss on it is kept.

    Text becomes tokens by byte pairs that are learned from the documents (or characters, or bytes); the first `context` tokens of a
    document are looked at. Without texts learned from beforehand, a transformer needs very many documents: where there are fewer
    than some hundred thousand, `tfidf` features with `logistic` or `svm`, and `fasttext`, are as a rule better and a hundred times
    faster. Compare them.

    Cost of an epoch: about `6 w + 12 d c` operations for each token, with `w` weights of the blocks, dimension `d` and documents of
    `c` tokens. The result depends neither on the number of threads nor on the order of the documents.

    Reference: Vaswani et al.: Attention is all you need, 2017; Devlin et al.: BERT, 2019.

    Parameters
    ----------
    tokens : {"chars", "bytes", "bpe"}, default 'bpe'
        What a token is.
        - "chars": A character of the training text. Other characters are spelled by the halves of
          their bytes.
        - "bytes": A byte.
        - "bpe": A byte, or a frequent piece of a word: pairs of tokens that are frequent in
          training become tokens, again and again.
    vocabulary_size : int, default 16384
        Number of tokens, where they are learned (`bpe`): the 256 bytes, the end of a document, and
        pieces of words. Must be an integer from 257 to 1000000.
    lowercase : bool, default True
        Whether text is put in lower case first.
    context : int, default 256
        Number of tokens that are looked at, the first ones of a document. Must be an integer from 1
        to 65536.
    layers : int, default 1
        Number of blocks: attention and a perceptron each. Must be an integer from 1 to 256.
    dimension : int, default 128
        Features of a position, a multiple of `heads`. Must be an integer from 1 to 65536.
    heads : int, default 4
        Number of heads of attention. Must be an integer from 1 to 1024.
    dropout : float, default 0.3
        Probability with which an output of embeddings, attention and perceptrons is set to 0 in
        training. Must be a number at least 0 and at most 0.95.
    token_dropout : float, default 0.5
        Probability with which a token is left out, each time the network learns from a document.
        Must be a number at least 0 and at most 0.95.
    learning_rate : float or None, default None
        Length of a step at its largest. Left out, the default of the model for its optimizer. Must
        be a number at least 0.000000001 and at most 10, or left out.
    schedule : {"cosine", "constant", "range"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
        - "range": Rises by the same factor with each step, from a ten-millionth of the learning
          rate (left out, 10): the learning-rate range test, as `gradus lab lr` draws it. Every
          iteration of the report is one step, `max_iter` of them (left out, 300), and the fit ends
          when the loss has grown to four times its least.
    warm_up : float, default 0.05
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    batch_size : int or None, default None
        Units (samples, images, texts) whose gradient makes a step. Left out, it is chosen by their
        number. Must be an integer from 1 to 1000000, or left out.
    micro_batch : int or None, default None
        Units whose gradient is computed at once: the gradients of the parts of a batch are added,
        which needs less memory. Left out, the whole batch. Must be an integer from 1 to 1000000, or
        left out.
    weight_decay : float, default 0.1
        Weight decay λ: a step of length η also multiplies weights by `1 − η λ`; not biases, nor
        weights of normalisations. Must be a number at least 0 and at most 10.
    clip_norm : float, default 1.0
        Largest norm of the gradient; a longer one is shortened to it. 0 turns this off. Must be a
        number at least 0 and at most 1000000.
    average : float, default 0.0
        Share of the moving average of the weights that stays with each step: 0.999 averages about
        the last 1,000 steps, and the average is the model. 0 turns this off. Must be a number at
        least 0 and at most 0.99999.
    class_weight : {"balanced", None}, default None
        Whether classes count by their samples, or all equally.
        - None: As much as its samples weigh.
        - "balanced": All classes the same: samples of rare ones count more.
    max_iter : int or None, default None
        Number of epochs: passes over the data (for each random start). Left out, it is chosen by
        the amount of data. Must be an integer from 1 to 1000000, or left out.
    patience : int, default 3
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
    device : {"cpu", "gpu"}, default 'cpu'
        Where the weights are trained. The model that comes of it predicts on the processor.
        - "cpu": The processor: the same seed gives the same bits on any number of threads
        - "gpu": A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`;
          sums on it have no fixed order, so that two fits differ by rounding
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    classes_
        The classes.
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.nn import TextClassifier
    >>> texts = ["cheap pills now", "meeting at ten", "cheap watches", "minutes of the meeting"] * 10
    >>> model = TextClassifier(layers=1, dimension=32, vocabulary_size=300).fit(texts, ["spam", "ham", "spam", "ham"] * 10)
    >>> model.predict(["the next meeting", "cheap cheap"]).tolist()
    ['ham', 'spam']
    >>> model.predict_proba(["cheap"]).shape
    (1, 2)
    """

    _kind = "textclassifier"

    def __init__(
        self,
        *,
        tokens: Literal["chars", "bytes", "bpe"] = 'bpe',
        vocabulary_size: int = 16384,
        lowercase: bool = True,
        context: int = 256,
        layers: int = 1,
        dimension: int = 128,
        heads: int = 4,
        dropout: float = 0.3,
        token_dropout: float = 0.5,
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant", "range"] = 'cosine',
        warm_up: float = 0.05,
        batch_size: int | None = None,
        micro_batch: int | None = None,
        weight_decay: float = 0.1,
        clip_norm: float = 1.0,
        average: float = 0.0,
        class_weight: Literal["balanced"] | None = None,
        max_iter: int | None = None,
        patience: int = 3,
        restarts: int = 1,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        device: Literal["cpu", "gpu"] = 'cpu',
        verbose: int = 0,
    ) -> None:
        self.tokens = tokens
        self.vocabulary_size = vocabulary_size
        self.lowercase = lowercase
        self.context = context
        self.layers = layers
        self.dimension = dimension
        self.heads = heads
        self.dropout = dropout
        self.token_dropout = token_dropout
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.warm_up = warm_up
        self.batch_size = batch_size
        self.micro_batch = micro_batch
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.average = average
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.patience = patience
        self.restarts = restarts
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device
        self.verbose = verbose


class Seq2Seq(Translator):
    """Sequence to sequence: a transformer that makes a text of another one, as in translation.

    An encoder reads the source, and a decoder with causal attention and attention to the encoder tells how probable each next
    token of the target is; pre-norm blocks, GELU, learned places (of a source counted from its begin and from its end, so that
    texts of different lengths can be read from behind), and one table of vectors for the tokens of sources, of targets and of the
    output. The fit minimises the cross-entropy of the tokens of targets by AdamW (β₂ = 0.99) over pairs that are drawn
    at random. A tenth of the pairs is held out (unless held-out data is given), and the weights with the least loss on it are kept.
    The report also says how many held-out targets (of at most 200) are found exactly.

    `gradus translate m.gradus "a text"` searches the most probable target: token by token, or with `--beams` several unfinished
    ones side by side. Targets are scored by their probability, without a bonus for length.

    Cost of a step: about `6 w` operations for each token of source and target, with `w` weights of encoder and decoder. The result
    does not depend on the number of threads.

    Reference: Sutskever, Vinyals, Le: Sequence to sequence learning with neural networks, 2014; Vaswani et al.: Attention is all
    you need, 2017.

    Parameters
    ----------
    tokens : {"chars", "bytes", "bpe"}, default 'chars'
        What a token is.
        - "chars": A character of the training text. Other characters are spelled by the halves of
          their bytes.
        - "bytes": A byte.
        - "bpe": A byte, or a frequent piece of a word: pairs of tokens that are frequent in
          training become tokens, again and again.
    vocabulary_size : int, default 4096
        Number of tokens, where they are learned (`bpe`): the 256 bytes, the end of a text, and
        pieces of words. Must be an integer from 257 to 1000000.
    layers : int, default 2
        Number of blocks of the encoder, and of the decoder. Must be an integer from 1 to 256.
    dimension : int, default 128
        Features of a position, a multiple of `heads`. Must be an integer from 1 to 65536.
    heads : int, default 4
        Number of heads of attention. Must be an integer from 1 to 1024.
    context : int, default 64
        The most tokens of a source or a target, its end included. Must be an integer from 1 to
        65536.
    dropout : float, default 0.0
        Probability with which an output of embeddings, attention and perceptrons is set to 0 in
        training. Must be a number at least 0 and at most 0.95.
    batch_size : int, default 64
        Pairs whose gradient makes a step. Must be an integer from 1 to 1000000.
    max_iter : int or None, default None
        Number of steps. Left out, it is chosen by the number of pairs. Must be an integer from 1 to
        100000000, or left out.
    interval : int or None, default None
        Steps between two evaluations on held-out pairs: an iteration of the report. Left out, a
        twentieth of the steps. Must be an integer from 1 to 100000000, or left out.
    micro_batch : int or None, default None
        Units whose gradient is computed at once: the gradients of the parts of a batch are added,
        which needs less memory. Left out, the whole batch. Must be an integer from 1 to 1000000, or
        left out.
    learning_rate : float or None, default None
        Length of a step at its largest. Left out, the default of the model for its optimizer. Must
        be a number at least 0.000000001 and at most 10, or left out.
    schedule : {"cosine", "constant", "range"}, default 'cosine'
        How the length of a step changes from the first step to the last.
        - "cosine": Falls to 0 along half a cosine, with the last step of the last iteration.
        - "constant": Stays the same.
        - "range": Rises by the same factor with each step, from a ten-millionth of the learning
          rate (left out, 10): the learning-rate range test, as `gradus lab lr` draws it. Every
          iteration of the report is one step, `max_iter` of them (left out, 300), and the fit ends
          when the loss has grown to four times its least.
    warm_up : float, default 0.05
        Share of the steps over which the length rises in a straight line from 0. Must be a number
        at least 0 and at most 0.9.
    weight_decay : float, default 0.1
        Weight decay λ: a step of length η also multiplies weights by `1 − η λ`; not biases, nor
        weights of normalisations. Must be a number at least 0 and at most 10.
    clip_norm : float, default 1.0
        Largest norm of the gradient; a longer one is shortened to it. 0 turns this off. Must be a
        number at least 0 and at most 1000000.
    average : float, default 0.0
        Share of the moving average of the weights that stays with each step: 0.999 averages about
        the last 1,000 steps, and the average is the model. 0 turns this off. Must be a number at
        least 0 and at most 0.99999.
    patience : int, default 0
        Stop when the held-out loss has not improved for so many evaluations; 0 turns that off. Must
        be an integer from 0 to 1000000.
    validation_fraction : float, default 0.1
        Share of the pairs that is held out to choose the weights that are kept, where no held-out
        data is given; 0 learns from all of them and keeps the last weights. Fewer than 20 pairs are
        all learned from. Must be a number at least 0 and at most 0.5.
    random_state : int, numpy generator or None, default 0
        Seed of the random numbers; None draws one. The same seed gives the same model to the last
        bit.
    device : {"cpu", "gpu"}, default 'cpu'
        Where the weights are trained. The model that comes of it predicts on the processor.
        - "cpu": The processor: the same seed gives the same bits on any number of threads
        - "gpu": A graphics card, by Vulkan, Metal or DirectX, in a build with the feature `gpu`;
          sums on it have no fixed order, so that two fits differ by rounding
    verbose : int, default 0
        1 shows the steps of a fit as they are made.

    Attributes
    ----------
    n_iter_
        Iterations done.
    report_
        What happened in the fit: a `gradus.Report`.

    Examples
    --------
    >>> from gradus.nn import Seq2Seq
    >>> sources = ["ab", "ba", "aab", "abb", "bab"] * 20
    >>> model = Seq2Seq(layers=1, dimension=32, max_iter=300, learning_rate=0.005).fit(sources, [text[::-1] for text in sources])
    >>> model.translate(["ab", "aab"])
    ['ba', 'baa']
    """

    _kind = "seq2seq"

    def __init__(
        self,
        *,
        tokens: Literal["chars", "bytes", "bpe"] = 'chars',
        vocabulary_size: int = 4096,
        layers: int = 2,
        dimension: int = 128,
        heads: int = 4,
        context: int = 64,
        dropout: float = 0.0,
        batch_size: int = 64,
        max_iter: int | None = None,
        interval: int | None = None,
        micro_batch: int | None = None,
        learning_rate: float | None = None,
        schedule: Literal["cosine", "constant", "range"] = 'cosine',
        warm_up: float = 0.05,
        weight_decay: float = 0.1,
        clip_norm: float = 1.0,
        average: float = 0.0,
        patience: int = 0,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | np.random.Generator | None = 0,
        device: Literal["cpu", "gpu"] = 'cpu',
        verbose: int = 0,
    ) -> None:
        self.tokens = tokens
        self.vocabulary_size = vocabulary_size
        self.layers = layers
        self.dimension = dimension
        self.heads = heads
        self.context = context
        self.dropout = dropout
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.interval = interval
        self.micro_batch = micro_batch
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.warm_up = warm_up
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.average = average
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
