"""Writes the family modules of the package (`gradus/linear.py`, …) from the registry of models.

    python python/generate.py            writes them
    python python/generate.py --check    says whether they are up to date

The parameters of a model are defined once, in Rust; these files are what Python makes of it: classes
with real signatures, so that editors, type checkers and `help()` see what there is.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent / "gradus"
# The compiled part alone: the package around it needs the files that are to be written.
sys.path.insert(0, str(HERE))

#: The base of a model by the first of its capabilities.
BASES = {
    "predict_values": "Regressor",
    "predict_classes": "Classifier",
    "recommend": "Recommender",
    "transform": "Transformer",
    "density": "NetworkDensity",
    "generate": "NetworkDensity",
    "cluster": "Clusterer",
    "embed": "WordModel",
}
#: Models with a base of their own.
SPECIAL = {
    "svm": "SupportVectorClassifier",
    "svr": "SupportVectorRegressor",
    "pca": "PrincipalComponents",
    "nmf": "NonNegativeFactors",
    "linearautoencoder": "Autoencoder",
    "gmm": "MixtureClusterer",
    "kmeans": "CentreClusterer",
    "lda": "OnlineTopics",
    "plsa": "TopicModel",
    "sif": "SentenceTransformer",
    "doc2vec": "DocumentTransformer",
    "fasttext": "FastTextClassifier",
    "textclassifier": "NetworkTextClassifier",
    "mlp": "NetworkClassifier",
    "mlpregressor": "NetworkRegressor",
    "autoencoder": "NetworkAutoencoder",
    "lm": "LanguageModel",
    "seq2seq": "Translator",
    "pixelcnn": "NetworkDensity",
    "vae": "NetworkCodes",
    "gan": "NetworkGenerator",
    "diffusion": "NetworkClassDensity",
    "cnn": "ImageClassifier",
    "vit": "PatchClassifier",
}
SOURCES = {
    "Regressor": "_features",
    "Classifier": "_features",
    "Recommender": "_ratings",
    "Transformer": "_transform",
    "Clusterer": "_transform",
    "SupportVectorClassifier": "_machines",
    "SupportVectorRegressor": "_machines",
    "TextTransformer": "_text",
    "PrincipalComponents": "_latent",
    "NonNegativeFactors": "_nmf",
    "Autoencoder": "_autoencoder",
    "MixtureClusterer": "_mixture",
    "CentreClusterer": "_clusters",
    "TopicModel": "_topics",
    "OnlineTopics": "_topics",
    "WordModel": "_words",
    "SentenceTransformer": "_sentences",
    "DocumentTransformer": "_sentences",
    "NetworkTextClassifier": "_classify",
    "NetworkClassifier": "_networks",
    "NetworkRegressor": "_networks",
    "NetworkAutoencoder": "_networks",
    "NetworkDensity": "_generative",
    "NetworkCodes": "_generative",
    "NetworkGenerator": "_generative",
    "NetworkClassDensity": "_generative",
    "FastTextClassifier": "_classify",
    "LanguageModel": "_language",
    "Translator": "_language",
    "ImageClassifier": "_images",
    "PatchClassifier": "_images",
}


#: Models that have no class: what learns from groups as well is in `gradus.audit`.
WITHOUT = {"fairreduction", "fairpenalty", "fairthresholds", "fairfeatures"}

#: Bases of models whose fits take no weights of samples, and so no weights of classes by name.
WITHOUT_WEIGHTS = {"NetworkTextClassifier", "ImageClassifier", "PatchClassifier", "NetworkDensity", "NetworkCodes"} | {
    "NetworkGenerator",
    "NetworkClassDensity",
}

#: Models of samples that take images as well, as rows with the parameter `image_shape`.
OF_IMAGES = {"autoencoder", "pixelcnn", "vae", "gan", "diffusion"}


def base_of(model: dict) -> str:
    if of_texts(model):
        return "TextTransformer"
    return SPECIAL.get(model["name"]) or BASES[model["capabilities"][0]]


def of_texts(model: dict) -> bool:
    return model["data"] == "documents" and model["capabilities"] == ["transform"] and model["name"] not in SPECIAL


def has_topics(model: dict) -> bool:
    return "topics" in model["capabilities"]


#: What parameters take in Python besides what the registry says: in words, and as a type.
ALSO = {
    "class_weight": ("dict of class to weight", "dict[Any, float]"),
    "kernel": ("function of two lists of samples", "Callable[[Any, Any], Any]"),
    "folds": ("splitter or pairs of indices", "Any"),
    "stop_words": ("str, set or None", "str | set[str] | None"),
    "init": ("array, clusters × features", "Any"),
}
MORE = {
    "kernel": (
        "A function is called with samples and the samples of training, and gives their kernel values, a row for "
        "each sample: the machine is then fitted as `precomputed`, and keeps the samples."
    ),
    "folds": (
        "Or a splitter of scikit-learn, or pairs of training and test indices, that put each sample into the test "
        "set of one fold."
    ),
    "c": "Infinity is taken as the largest finite number.",
}
ABOUT = {
    "factor": "Recommenders and matrix factorisation.",
    "latent": "Models of latent structure.",
    "linear": "Linear models and support vector machines.",
    "nn": "Neural networks.",
    "text": "Texts as features, and vectors of words.",
}
EXAMPLES = {
    "density": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> X = np.random.default_rng(0).normal(size=(60, 2))
>>> model = {name}(hidden=(8,), max_iter=5, random_state=0).fit(X)
>>> model.score_samples(X).shape, model.sample(3, random_state=0).shape
((60,), (3, 2))
""",
    "generator": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> X = np.random.default_rng(0).normal(size=(60, 2))
>>> model = {name}(hidden=(8,), max_iter=5, random_state=0).fit(X)
>>> model.sample(3, random_state=0).shape
(3, 2)
""",
    "class_density": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> X = np.random.default_rng(0).normal(size=(60, 2))
>>> model = {name}(hidden=(8,), max_iter=5, random_state=0).fit(X, np.where(X[:, 0] > 0, "right", "left"))
>>> model.sample(3, random_state=0, label="left", steps=10).shape, model.score_samples(X).shape
((3, 2), (60,))
""",
    "codes": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> X = np.random.default_rng(0).normal(size=(60, 4))
>>> model = {name}(hidden=(8,), n_components=2, max_iter=5, random_state=0).fit(X)
>>> model.transform(X).shape, model.sample(3, random_state=0).shape
((60, 2), (3, 4))
""",
    "predict_values": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> X = np.random.default_rng(0).normal(size=(60, 2))
>>> model = {name}().fit(X, X @ [2.0, -1.0] + 3.0)
>>> model.predict([[1.0, 1.0]]).shape
(1,)
""",
    "predict_classes": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> X = np.random.default_rng(0).normal(size=(60, 2))
>>> model = {name}().fit(X, np.where(X[:, 0] > 0, "yes", "no"))
>>> model.predict([[2.0, 0.0]])
array(['yes'], dtype='<U3')
""",
    "baseline": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> X = np.random.default_rng(0).normal(size=(60, 2))
>>> model = {name}().fit(X, np.repeat(["yes", "no"], [45, 15]))
>>> model.predict([[2.0, 0.0]])
array(['yes'], dtype='<U3')
""",
    "transform": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> X = np.random.default_rng(0).normal(size=(60, 4))
>>> model = {name}().fit(X)
>>> model.transform(X).shape[0]
60
""",
    "non_negative": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> X = np.random.default_rng(0).exponential(size=(60, 4))
>>> model = {name}().fit(X)
>>> model.transform(X).shape[0]
60
""",
    "texts": """
>>> from gradus.{family} import {name}
>>> model = {name}()
>>> model.fit_transform(["the cat sat", "The cat, the dog"]).shape
(2, 4)
>>> list(model.get_feature_names_out())
['cat', 'dog', 'sat', 'the']
""",
    "topics": """
>>> from gradus.{family} import {name}
>>> texts = ["cat dog cat", "dog cat dog", "sun moon sun", "moon sun moon"]
>>> model = {name}(n_topics=2)
>>> model.fit_transform(texts).shape
(4, 2)
>>> sorted(len(words) for words in model.top_words(2))
[2, 2]
""",
    "embed": """
>>> from gradus.{family} import {name}
>>> texts = ["the cat sat", "the dog sat", "a bird sang"] * 20
>>> model = {name}(dimension=3).fit(texts)
>>> model.vectors_.shape
(7, 3)
>>> len(model.most_similar("cat", topn=3))
3
""",
    "sentences": """
>>> from gradus.{family} import {name}
>>> texts = ["the cat sat on the mat", "the dog sat on the mat", "stocks fell on the market"]
>>> model = {name}(dimension=3, min_count=1)
>>> model.fit_transform(texts).shape
(3, 3)
""",
    "documents": """
>>> from gradus.{family} import {name}
>>> texts = ["the cat sat on the mat", "the dog sat on the mat", "stocks fell on the market"] * 5
>>> model = {name}(dimension=4)
>>> model.fit_transform(texts).shape
(15, 4)
""",
    "text_classes": """
>>> from gradus.{family} import {name}
>>> texts = ["cheap pills now", "meeting at ten", "cheap watches", "minutes of the meeting"] * 10
>>> model = {name}({quick}).fit(texts, ["spam", "ham", "spam", "ham"] * 10)
>>> model.predict(["the next meeting", "cheap cheap"]).tolist()
['ham', 'spam']
>>> model.predict_proba(["cheap"]).shape
(1, 2)
""",
    "language": """
>>> from gradus.{family} import {name}
>>> text = "the cat sat on the mat. " * 40
>>> model = {name}(layers=1, dimension=32, context=16, max_iter=250, learning_rate=0.01).fit(text)
>>> model.generate("the cat sat", 10, temperature=0)
' on the ma'
>>> model.perplexity(text) < 2
True
""",
    "translation": """
>>> from gradus.{family} import {name}
>>> sources = ["ab", "ba", "aab", "abb", "bab"] * 20
>>> model = {name}(layers=1, dimension=32, max_iter=300, learning_rate=0.005).fit(sources, [text[::-1] for text in sources])
>>> model.translate(["ab", "aab"])
['ba', 'baa']
""",
    "images": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> rng = np.random.default_rng(0)
>>> y = np.repeat(["dark", "light"], 40)
>>> X = rng.integers(0, 100, (80, 8, 8), dtype=np.uint8) + 155 * (y == "light").astype(np.uint8)[:, None, None]
>>> model = {name}(channels=(8, 16), max_iter=10).fit(X, y)
>>> model.predict(X[[0, 79]]).tolist()
['dark', 'light']
""",
    "patches": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> rng = np.random.default_rng(0)
>>> y = np.repeat(["dark", "light"], 40)
>>> X = rng.integers(0, 100, (80, 8, 8), dtype=np.uint8) + 155 * (y == "light").astype(np.uint8)[:, None, None]
>>> model = {name}(features=16, depth=2, max_iter=30).fit(X, y)
>>> model.predict(X[[0, 79]]).tolist()
['dark', 'light']
>>> model.attention(X[:1]).shape
(1, 2, 4, 4, 4)
""",
    "cluster": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> X = np.random.default_rng(0).normal(size=(60, 2))
>>> model = {name}().fit(X)
>>> np.array_equal(model.predict(X), model.labels_)
True
""",
    "recommend": """
>>> import numpy as np
>>> from gradus.{family} import {name}
>>> rng = np.random.default_rng(0)
>>> users, items = rng.integers(0, 30, 400), rng.integers(0, 20, 400)
>>> model = {name}({small}).fit((users, items, rng.integers(1, 6, 400)))
>>> items, scores = model.recommend(7, n=3)
>>> items.shape
(3,)
""",
}


def python_default(param: dict) -> str:
    default = param["default"]
    if isinstance(param["kind"], list) and default == "none":
        return "None"
    if param["kind"] == "float" and default is not None:
        return repr(float(default))
    if isinstance(default, list):  # A default must not be something that a caller can change.
        return repr(tuple(default))
    return repr(default)


def python_type(param: dict) -> str:
    kind = param["kind"]
    optional = param["optional"]
    if isinstance(kind, list):
        words = [word for word, _ in kind if word != "none"]
        optional = optional or len(words) < len(kind)
        kind = f"Literal[{', '.join(json.dumps(word) for word in words)}]"
    elif isinstance(param["default"], list):
        kind = f"{kind} | tuple[{kind[5:-1]}, ...]"
    return f"{kind} | None" if optional else kind


def tidy(text: str) -> str:
    """Rust's docs as Python's: without examples in Rust, and links without brackets."""
    text = re.sub(r"```.*?```\n?", "", text, flags=re.S)
    text = re.sub(r"\[`([^`\]]+)`\](\([^)]*\))?", r"`\1`", text)
    return text.strip()


def also(name: str, model: dict) -> tuple[str, str] | None:
    """What a parameter takes besides what the registry says."""
    if name == "class_weight" and base_of(model) in WITHOUT_WEIGHTS:
        return None
    if name == "kernel" and model["name"] not in ("svm", "svr"):
        return None
    return ALSO.get(name)


def param_doc(name: str, param: dict, model: dict) -> str:
    kind = param["kind"]
    if name == "random_state":
        typed = "int, numpy generator or None"
    elif isinstance(kind, list):
        typed = "{" + ", ".join(f'"{word}"' for word, _ in kind if word != "none")
        typed += ", None}" if any(word == "none" for word, _ in kind) else "}"
    else:
        typed = kind + (" or None" if param["optional"] else "")
    if also(name, model):
        typed += f" or {ALSO[name][0]}"
    lines = [f"{name} : {typed}, default {python_default(param)}"]
    body = tidy(param["doc"]).replace("\n", " ")
    if name == "random_state":
        body = "Seed of the random numbers; None draws one. The same seed gives the same model to the last bit."
    rule = param["rule"][0].upper() + param["rule"][1:]
    if not isinstance(kind, list) and kind != "bool" and name != "random_state":
        body = f"{body} {rule}."
    if name in MORE and (name not in ALSO or also(name, model)):
        body = f"{body} {MORE[name]}"
    lines += textwrap.wrap(body, 96, initial_indent="    ", subsequent_indent="    ")
    if isinstance(kind, list):
        for word, meaning in kind:
            shown = "None" if word == "none" else f'"{word}"'
            text = f"{shown}: {tidy(meaning)}".replace("\n", " ")
            lines += textwrap.wrap(text, 96, initial_indent="    - ", subsequent_indent="      ")
    return "\n".join(lines)


_ANEW = "Whether another `fit` starts from the coefficients of the last one, where it has as many: it then takes fewer iterations to the same solution."
_FROM_LAST = "Whether another `fit` starts from the model of the last one, not at random."
WARM = {
    "recommend": _FROM_LAST,
    "density": _FROM_LAST,
    "generate": _FROM_LAST,
    "predict_values": f"{_ANEW} A fit that chooses its penalty starts anew.",
    "predict_classes": _ANEW,
    "transform": _FROM_LAST,
    "cluster": _FROM_LAST,
    "svm": f"{_ANEW} Kernel machines, `crammer_singer` and the penalty `l1` start anew.",
    "svr": f"{_ANEW} Kernel machines start anew.",
}


def of_the_package(model: dict) -> list[dict]:
    """Parameters that the package adds to those of the registry."""
    import _gradus

    added = []
    if model["data"] == "images" or model["name"] in OF_IMAGES:
        added.append(
            {
                "name": "image_shape",
                "doc": "Height and width, and the number of channels where it is not 1, of images that are given as rows. Left out, rows "
                "are square images: grey, or in three colours.",
                "kind": "tuple[int, ...]",
                "rule": "must be two or three numbers",
                "default": None,
                "optional": True,
            }
        )
    if model["data"] == "samples":
        added.append(
            {
                "name": "missing",
                "doc": "What stands for a missing value (NaN, None) in the features.",
                # Only some models take entries that are missing.
                "kind": [choice for choice in _gradus.missing_choices() if model.get("missing") or choice[0] != "keep"],
                "rule": "must be one of these",
                "default": "keep" if model.get("missing") else "refuse",
                "optional": False,
            }
        )
    if model["name"] == "svm":
        added.append(
            {
                "name": "decision_function_shape",
                "doc": "What `decision_function` gives for more than two classes.",
                "kind": [
                    ("ovr", "a score for each class."),
                    ("ovo", "a score for each pair of classes; of kernel machines, which tell pairs apart."),
                ],
                "rule": "must be one of these",
                "default": "ovr",
                "optional": False,
            }
        )
    if model["name"] == "kmeans":
        added.append(
            {
                "name": "init",
                "doc": "Where the iterations begin.",
                "kind": [("k-means++", "at samples drawn far from each other.")],
                "rule": "must be 'k-means++' or an array",
                "default": "k-means++",
                "optional": False,
            }
        )
    if model["warm_start"]:
        added.append(
            {
                "name": "warm_start",
                "doc": WARM.get(model["name"], WARM[model["capabilities"][0]]),
                "kind": "bool",
                "rule": "must be true or false",
                "default": False,
                "optional": False,
            }
        )
    return added


ATTRIBUTES = {
    "Regressor": [
        ("coef_", "Coefficients, features (targets × features, if y has columns); none of a kernel."),
        ("intercept_", "The intercept."),
        ("n_features_in_", "Number of features, or columns of the frame, seen in `fit`."),
        ("feature_names_in_", "Their names, if `fit` got a data frame."),
    ],
    "Classifier": [
        ("classes_", "The classes."),
        ("coef_", "Coefficients, 1 × features for two classes, else classes × features; none of a kernel."),
        ("intercept_", "The intercepts."),
        ("n_features_in_", "Number of features, or columns of the frame, seen in `fit`."),
        ("feature_names_in_", "Their names, if `fit` got a data frame."),
    ],
    "SupportVectorClassifier": [
        ("support_", "Of a kernel: which samples of training are support vectors, class after class."),
        ("support_vectors_", "Of a kernel: the support vectors in that order, in the units of the features."),
        ("n_support_", "Of a kernel: the number of support vectors of each class."),
        ("dual_coef_", "Of a kernel: their coefficients, (classes − 1) × support vectors, a row for each of the other classes."),
    ],
    "SupportVectorRegressor": [
        ("support_", "Of a kernel: which samples of training are support vectors, ascending."),
        ("support_vectors_", "Of a kernel: the support vectors in that order, in the units of the features."),
        ("n_support_", "Of a kernel: their number, as an array of one."),
        ("dual_coef_", "Of a kernel: their coefficients, targets × support vectors."),
    ],
    "PrincipalComponents": [
        ("components_", "The components, components × features: orthonormal rows, the largest entry of each positive."),
        ("explained_variance_", "The variance of each component."),
        ("explained_variance_ratio_", "The share of each component of the variance."),
        ("singular_values_", "The singular values of the centred data."),
        ("mean_", "The mean of the features; zeros with `center=False`."),
        ("noise_variance_", "The mean variance in the directions left out, over features less components."),
        ("n_components_", "The number of components."),
        ("n_samples_", "The number of samples of training."),
    ],
    "NonNegativeFactors": [
        ("components_", "The components, components × features, those that contribute most first."),
        ("n_components_", "The number of components."),
        (
            "reconstruction_err_",
            "The Frobenius norm of the difference between the data and the product of the factors; of `kl`, the root of "
            "twice the divergence.",
        ),
    ],
    "Autoencoder": [
        ("encoder_", "The matrix W that makes a code of a centred sample, components × features."),
        ("decoder_", "The matrix V that makes a centred sample of a code, features × components."),
        ("mean_", "The mean of the features."),
        ("angles_", "The angles between the space of the decoder and the first principal components, in degrees, the largest first."),
        ("n_components_", "The number of components."),
    ],
    "MixtureClusterer": [
        ("weights_", "The share of each component."),
        ("means_", "The means, components × features."),
        (
            "covariances_",
            "The covariances: components × features × features (`full`), features × features (`tied`), components × features "
            "(`diag`), components (`spherical`), one number (`unit`).",
        ),
        ("precisions_cholesky_", "`P` with `P Pᵀ` the inverse of a covariance, in the same shapes, as scikit-learn has it."),
        ("n_components_", "The number of components."),
        ("lower_bound_", "The mean log-likelihood of a training sample."),
        ("converged_", "Whether the fit converged within its tolerance."),
    ],
    "TopicModel": [
        ("components_", "Expected counts of words in topics, topics × words, plus the prior; rows in proportion to p(word | topic)."),
        ("topics_", "The probability of each word in each topic, topics × words."),
        ("shares_", "The share of each topic of the words of training, largest first."),
        ("coherence_", "The NPMI of the ten top words of each topic in the documents of training."),
        ("alpha_", "The prior of each topic in a document; zeros of `Plsa`."),
        ("beta_", "The prior of each word in a topic; 0 of `Plsa`."),
        ("n_features_in_", "The number of words."),
    ],
    "OnlineTopics": [],
    "Transformer": [
        ("n_features_in_", "Number of features, or columns of the frame, seen in `fit`."),
        ("feature_names_in_", "Their names, if `fit` got a data frame."),
    ],
    "Clusterer": [
        ("labels_", "The cluster of each sample of training; −1 of one that belongs to none. Not in a model that was loaded."),
        ("n_clusters_", "The number of clusters."),
        ("cluster_sizes_", "The number of training samples in each cluster."),
        ("n_features_in_", "Number of features, or columns of the frame, seen in `fit`."),
        ("feature_names_in_", "Their names, if `fit` got a data frame."),
    ],
    "CentreClusterer": [
        ("cluster_centers_", "The centres, clusters × features, in the units of the features."),
        (
            "inertia_",
            "The weighted sum of the squared distances of the samples of training to their centres; of `cosine`, of one minus "
            "the cosine.",
        ),
    ],
    "WordModel": [
        ("vocabulary_", "The row of each word: dict, the most frequent words first."),
        ("vectors_", "The vectors, words × coordinates, in the order of `vocabulary_`."),
        ("counts_", "How often each word was there in training."),
    ],
    "TextTransformer": [
        ("vocabulary_", "The column of each word; not of hashed features."),
        ("idf_", "The weight of each feature, of `Tfidf`."),
    ],
    "NetworkTextClassifier": [
        ("classes_", "The classes."),
    ],
    "FastTextClassifier": [
        ("classes_", "The classes."),
    ],
    "ImageClassifier": [
        ("classes_", "The classes."),
        ("image_shape_", "Height, width and channels of the images of `fit`."),
        ("n_features_in_", "The number of their numbers."),
    ],
    "PatchClassifier": [
        ("classes_", "The classes."),
        ("image_shape_", "Height, width and channels of the images of `fit`."),
        ("n_features_in_", "The number of their numbers."),
    ],
    "NetworkClassifier": [
        ("classes_", "The classes."),
        ("n_features_in_", "Number of features, or columns of the frame, seen in `fit`."),
        ("feature_names_in_", "Their names, if `fit` got a data frame."),
    ],
    "NetworkRegressor": [
        ("n_features_in_", "Number of features, or columns of the frame, seen in `fit`."),
        ("feature_names_in_", "Their names, if `fit` got a data frame."),
    ],
    "NetworkAutoencoder": [
        ("n_features_in_", "Number of features, or columns of the frame, seen in `fit`."),
        ("feature_names_in_", "Their names, if `fit` got a data frame."),
    ],
    "NetworkDensity": [
        ("n_features_in_", "Number of features, or columns of the frame, seen in `fit`."),
        ("feature_names_in_", "Their names, if `fit` got a data frame."),
    ],
    "NetworkCodes": [
        ("n_features_in_", "Number of features, or columns of the frame, seen in `fit`."),
        ("feature_names_in_", "Their names, if `fit` got a data frame."),
    ],
    "NetworkGenerator": [
        ("n_features_in_", "Number of features, or columns of the frame, seen in `fit`."),
        ("feature_names_in_", "Their names, if `fit` got a data frame."),
    ],
    "NetworkClassDensity": [
        ("n_features_in_", "Number of features, or columns of the frame, seen in `fit`."),
        ("feature_names_in_", "Their names, if `fit` got a data frame."),
        ("classes_", "The classes, ascending, if `fit` got some."),
    ],
    "LanguageModel": [],
    "Translator": [],
    "SentenceTransformer": [
        ("word_weights_", "The weight of each word."),
        ("components_", "The directions that are removed, by rows."),
    ],
    "DocumentTransformer": [
        ("word_vectors_", "The output vectors of the words, in the ascending order of the words."),
    ],
    "Recommender": [
        ("users_, items_", "The ids of training, ascending."),
    ],
}


#: The examples, and whole attributes, of models with a base of their own.
OWN_EXAMPLES = {
    "SentenceTransformer": "sentences",
    "DocumentTransformer": "documents",
    "NetworkTextClassifier": "text_classes",
    "FastTextClassifier": "text_classes",
    "LanguageModel": "language",
    "Translator": "translation",
    "ImageClassifier": "images",
    "PatchClassifier": "patches",
    "NetworkDensity": "density",
    "NetworkCodes": "codes",
    "NetworkGenerator": "generator",
    "NetworkClassDensity": "class_density",
}

#: Parameters of an example, so that it is quick.
QUICK = {
    "fasttext": "dimension=8",
    "textclassifier": "layers=1, dimension=32, vocabulary_size=300",
}


def class_text(model: dict) -> str:
    base = base_of(model)
    attributes = ATTRIBUTES.get(BASES.get(model["capabilities"][0], ""), [])
    attributes = attributes + (ATTRIBUTES[base] if model["name"] in SPECIAL else [])
    if of_texts(model):
        attributes = ATTRIBUTES[base]
    if has_topics(model):
        attributes = ATTRIBUTES["TopicModel"]
    if base in OWN_EXAMPLES or base.startswith("Network"):
        attributes = ATTRIBUTES[base]
    params = []
    for param in model["params"]:
        params.append(("random_state" if param["name"] == "seed" else param["name"], param))
    params += [(param["name"], param) for param in of_the_package(model)]
    doc = [model["summary"], "", tidy(model["docs"]), "", "Parameters", "----------"]
    doc += [param_doc(name, param, model) for name, param in params]
    doc += ["verbose : int, default 0", "    1 shows the steps of a fit as they are made."]
    doc += ["", "Attributes", "----------"]
    for name, meaning in attributes:
        doc += [name, *textwrap.wrap(meaning, 96, initial_indent="    ", subsequent_indent="    ")]
    doc += ["n_iter_", "    Iterations done.", "report_", "    What happened in the fit: a `gradus.Report`."]
    names = {param["name"] for param in model["params"]}
    small = "rank=4" if "rank" in names else ""
    kind = "texts" if of_texts(model) else model["capabilities"][0]
    kind = "topics" if has_topics(model) else kind
    kind = OWN_EXAMPLES.get(base, kind)
    kind = "non_negative" if model.get("non_negative") else kind
    kind = "baseline" if model.get("baseline") and kind == "predict_classes" else kind
    quick = QUICK.get(model["name"], "")
    example = EXAMPLES[kind].format(family=model["family"], name=model["class"], small=small, quick=quick)
    doc += ["", "Examples", "--------", example.strip()]
    body = textwrap.indent("\n".join(doc), "    ").replace("\\", "\\\\")
    body = "\n".join(line.rstrip() for line in body.splitlines()).lstrip()

    lines = [f"class {model['class']}({base}):", f'    """{body}', '    """', ""]
    lines += [f'    _kind = "{model["name"]}"']
    if model["updates"]:
        lines += ["    _updates = True"]
    if model.get("baseline") and base in ("Regressor", "Classifier"):
        lines += ["    _is_baseline = True"]
    lines += ["", "    def __init__(", "        self,", "        *,"]
    for name, param in params:
        typed = "int | np.random.RandomState | np.random.Generator | None" if name == "random_state" else python_type(param)
        if name == "folds":
            typed = f"int | {ALSO[name][1]}"
        elif also(name, model):
            typed = f"{typed.removesuffix(' | None')} | {ALSO[name][1]}" + " | None" * typed.endswith(" | None")
        lines.append(f"        {name}: {typed} = {python_default(param)},")
    lines += ["        verbose: int = 0,", "    ) -> None:"]
    lines += [f"        self.{name} = {name}" for name, _ in params]
    lines += ["        self.verbose = verbose"]
    return "\n".join(lines)


def module_text(family: str, models: list[dict]) -> str:
    bases = sorted({base_of(model) for model in models})
    names = sorted(model["class"] for model in models)
    classes = "\n\n\n".join(class_text(model) for model in models)
    code = re.sub(r'""".*?"""', "", classes, flags=re.S)
    uses_numpy = "np.random" in code
    typing = ", ".join(name for name in ("Any", "Callable", "Literal") if re.search(rf"\b{name}\b", code))
    lines = [
        f'"""{ABOUT[family]}\n\nWritten by python/generate.py from the definitions in crates/gradus-{family}: change those.\n"""',
        "",
        "from __future__ import annotations",
        "",
    ]
    lines += [f"from typing import {typing}", ""] if typing else []
    lines += ["import numpy as np", ""] if uses_numpy else []
    by_source: dict[str, list[str]] = {}
    for base in bases:
        by_source.setdefault(SOURCES[base], []).append(base)
    lines += [f"from gradus.{source} import {', '.join(found)}" for source, found in sorted(by_source.items())]
    lines += ["", f"__all__ = {json.dumps(names, indent=4)}".replace('"\n]', '",\n]'), "", ""]
    return "\n".join(lines) + "\n" + classes + "\n"


def main() -> int:
    import _gradus

    families: dict[str, list[dict]] = {}
    for model in json.loads(_gradus.describe()):
        if model["name"] in WITHOUT:
            continue
        families.setdefault(model["family"], []).append(model)
    stale = []
    for family, models in families.items():
        path = HERE / f"{family}.py"
        text = module_text(family, models)
        if not path.exists() or path.read_text() != text:
            stale.append(path.name)
            if "--check" not in sys.argv[1:]:
                path.write_text(text)
    if "--check" in sys.argv[1:] and stale:
        print(f"{', '.join(stale)}: not what the registry says; run python python/generate.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
