"""Transformers and clusterings: the base classes and the generator, with a compiled part made up in Python.

What these tests replace is the compiled `fit` and its model; the checks of
the features, the conventions of scikit-learn and the code that the generator writes are those of the package.
"""

import importlib.util
import inspect
import json
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import gradus
from gradus import _base, _features, _transform
from gradus.linear import Ridge

PYTHON = Path(__file__).resolve().parents[1]


def description(name, cls, capability, params):
    return {
        "name": name,
        "family": "linear",
        "class": cls,
        "summary": "A model that is made up.",
        "docs": "It is there to test what the package makes of a model of its kind.",
        "data": "samples",
        "capabilities": [capability],
        "implicit": False,
        "updates": False,
        "warm_start": False,
        "params": params,
    }


SCALE = description(
    "madeupscale",
    "MadeUpScale",
    "transform",
    [
        {
            "name": "by",
            "doc": "What features are multiplied by.",
            "kind": "float",
            "rule": "must be above 0",
            "default": 2,
            "optional": False,
        }
    ],
)
MEANS = description(
    "madeupmeans",
    "MadeUpMeans",
    "cluster",
    [
        {
            "name": "n_clusters",
            "doc": "Number of clusters.",
            "kind": "int",
            "rule": "must be an integer from 1",
            "default": 2,
            "optional": False,
        },
        {
            "name": "seed",
            "doc": "Seed of the random numbers.",
            "kind": "int",
            "rule": "must be an integer from 0",
            "default": 0,
            "optional": False,
        },
    ],
)


class Features:
    """Features that keep their numbers, where the compiled ones hide them."""

    def __init__(self, array):
        self.array = np.asarray(array, dtype=np.float64)
        self.shape = self.array.shape
        self.unknown_words = 0

    dense = classmethod(lambda cls, array: cls(array))

    @classmethod
    def sparse(cls, data, indices, indptr, n_cols, canonical=True):
        shape = (len(indptr) - 1, n_cols)
        return cls(scipy.sparse.csr_matrix((data, indices, indptr), shape=shape).toarray())

    def named(self, names, missing=False):
        return self


class CompiledModel:
    """A model as the compiled part gives it."""

    encodes = False
    columns = None

    def __init__(self, kind, params, features, weights):
        self.kind, self.params = kind, json.dumps(params)
        self.report = json.dumps(
            {
                "iterations": 1,
                "stop_reason": "solved",
                "objective": 0.0,
                "validation": None,
                "metric": "",
                "seconds": 0.0,
                "certificate": None,
                "notes": [],
                "cautions": [],
                "trace": [],
                "baselines": [],
            }
        )
        x = features.array
        self.n_features = x.shape[1]
        self.mean = np.average(x, axis=0, weights=weights)
        self.by = params.get("by")
        self.n_clusters = params.get("n_clusters")

    def page(self, title):
        return title

    # As `Model.transform` and its neighbours in python/src/model.rs.

    @property
    def output_names(self):
        return [f"scaled{at}" for at in range(self.n_features)]

    def transform(self, features):
        return (features.array - self.mean) * self.by

    def inverse_transform(self, features):
        return None if self.by == 1.0 else features.array / self.by + self.mean

    def training_labels(self):
        return None

    def labels(self, features):
        return (features.array[:, 0] > self.mean[0]).astype(np.int64)

    def distances(self, features):
        return np.abs(features.array[:, :1] - self.mean[0] * np.arange(self.n_clusters))

    def memberships(self, features):
        return None

    @property
    def cluster_sizes(self):
        return np.array([3, 3], dtype=np.uint64)


@pytest.fixture
def made_up(monkeypatch):
    """The classes that the generator writes of the descriptions, over the compiled part made up here."""
    monkeypatch.setitem(sys.modules, "_gradus", gradus._gradus)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("generate", PYTHON / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    text = generate.module_text("linear", [SCALE, MEANS])

    def fit(name, params, features, weights=None, progress=None, warm=None):
        return CompiledModel(name, json.loads(params), features, weights)

    compiled = SimpleNamespace(Features=Features, fit=fit)
    for module in (_features, _transform):
        monkeypatch.setattr(module, "_gradus", compiled)
    for model in (SCALE, MEANS):
        monkeypatch.setitem(_base.DESCRIBED, model["name"], model)
    module = SimpleNamespace()
    exec(compile(text, "made_up.py", "exec"), module.__dict__)
    for cls in (module.MadeUpScale, module.MadeUpMeans):
        cls.__module__ = __name__
        monkeypatch.setitem(globals(), cls.__name__, cls)
    module.text = text
    return module


X = np.array([[0.0, 1.0], [1.0, 5.0], [2.0, 0.0], [3.0, 2.0], [4.0, 4.0], [8.0, 0.0]])


def test_the_generator_writes_classes_of_both_kinds(made_up):
    assert "from gradus._transform import Clusterer, Transformer" in made_up.text
    assert issubclass(made_up.MadeUpScale, _transform.Transformer)
    assert issubclass(made_up.MadeUpMeans, _transform.Clusterer)
    signature = inspect.signature(made_up.MadeUpScale)
    assert list(signature.parameters) == ["by", "missing", "verbose"]
    assert signature.parameters["by"].default == 2.0
    assert list(inspect.signature(made_up.MadeUpMeans).parameters) == [
        "n_clusters",
        "random_state",
        "missing",
        "verbose",
    ]
    doc = made_up.MadeUpMeans.__doc__
    assert "labels_" in doc and "cluster_sizes_" in doc and "Number of clusters." in doc
    assert "coef_" not in doc


def test_a_transformer_has_the_conventions_of_scikit_learn(made_up):
    model = made_up.MadeUpScale(by=3.0)
    with pytest.raises(NotFittedError):
        model.transform(X)
    assert model.fit(X) is model and model.fit(X, y=None) is model
    expected = (X - X.mean(axis=0)) * 3.0
    np.testing.assert_allclose(model.transform(X), expected)
    np.testing.assert_allclose(clone(model).fit_transform(X), expected)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X)
    assert list(model.get_feature_names_out()) == ["scaled0", "scaled1"]
    assert model.n_features_in_ == 2
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).transform(X), expected)
    np.testing.assert_allclose(make_pipeline(model, Ridge()).named_steps["madeupscale"].by, 3.0)


def test_a_transformer_takes_weights_frames_and_sparse_matrices(made_up):
    pandas = pytest.importorskip("pandas")
    weighted = made_up.MadeUpScale().fit(X, sample_weight=[0, 0, 0, 0, 0, 2.0])
    np.testing.assert_allclose(weighted.transform(X[5:]), [[0.0, 0.0]])
    with pytest.raises(ValueError, match="[Nn]egative"):
        made_up.MadeUpScale().fit(X, sample_weight=[-1, 1, 1, 1, 1, 1])
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = made_up.MadeUpScale().set_output(transform="pandas").fit(frame)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert list(model.transform(frame).columns) == ["scaled0", "scaled1"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"a": "c"}))
    plain = made_up.MadeUpScale().fit(X)
    np.testing.assert_allclose(plain.transform(scipy.sparse.csr_matrix(X)), plain.transform(X))
    with pytest.raises(ValueError, match="3 features.*expecting 2"):
        plain.transform(np.ones((1, 3)))


def test_a_transformer_keeps_single_precision_and_says_if_it_cannot_go_back(made_up):
    single = X.astype(np.float32)
    model = made_up.MadeUpScale(by=4.0).fit(single)
    assert model.transform(single).dtype == np.float32
    assert model.inverse_transform(model.transform(single)).dtype == np.float32
    assert model.transform(X).dtype == np.float64
    one_way = made_up.MadeUpScale(by=1.0).fit(X)
    with pytest.raises(NotImplementedError, match="MadeUpScale transforms in one direction only"):
        one_way.inverse_transform(X)


def test_a_clustering_has_the_conventions_of_scikit_learn(made_up):
    model = made_up.MadeUpMeans(n_clusters=2, random_state=3)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "n_clusters_")
    labels = [0, 0, 0, 0, 1, 1]
    assert model.fit(X).labels_.tolist() == labels
    assert clone(model).fit_predict(X).tolist() == labels
    assert model.predict(X).tolist() == labels
    assert model.predict(X.astype(np.float32)).dtype == np.int64
    assert model.n_clusters_ == 2 and model.cluster_sizes_.tolist() == [3, 3]
    assert model.distances(X).shape == (6, 2)
    with pytest.raises(NotImplementedError, match="MadeUpMeans does not know the probability"):
        model.memberships(X)
    assert pickle.loads(pickle.dumps(model)).labels_.tolist() == labels


def test_the_compiled_part_says_what_a_model_can_do_instead():
    model = Ridge().fit(X, X[:, 0]).model_
    features = gradus._gradus.Features.dense(X)
    for method in ("transform", "inverse_transform", "labels", "distances", "memberships"):
        with pytest.raises(NotImplementedError, match="ridge.*predict numbers"):
            getattr(model, method)(features)
    for name in ("output_names", "n_clusters", "cluster_sizes"):
        with pytest.raises(NotImplementedError, match="ridge.*predict numbers"):
            getattr(model, name)
    with pytest.raises(RuntimeError, match="neither numbers nor classes"):
        gradus._gradus.fit("ridge", "{}", features)
