"""K-means beside scikit-learn's, and the measures of clusters."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import cluster, datasets, metrics

import gradus
from gradus.latent import KMeans

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "gradus"


def blobs(n=600, d=5, k=6, seed=0):
    rng = np.random.default_rng(seed)
    centres = 4 * rng.normal(size=(k, d))
    return centres[rng.integers(0, k, n)] + rng.normal(size=(n, d))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_start_gives_the_clusters_of_scikit_learn(dtype, sparse):
    X = blobs().astype(dtype)
    X[np.abs(X) < 1] = 0
    start = X[:6]
    given = sp.csr_matrix(X) if sparse else X
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X))
    theirs = cluster.KMeans(6, init=start, n_init=1, tol=0).fit(given, sample_weight=weights)
    ours = KMeans(n_clusters=6, init=start, tol=0.0, standardize=False).fit(given, sample_weight=weights)
    assert np.array_equal(ours.labels_, theirs.labels_)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-5)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-4, atol=1e-4)
    assert ours.cluster_centers_.dtype == dtype and ours.transform(given).dtype == dtype
    np.testing.assert_allclose(ours.transform(given), theirs.transform(given), rtol=1e-3, atol=1e-3)
    assert ours.score(given, sample_weight=weights) == pytest.approx(theirs.score(given, sample_weight=weights), rel=1e-4)


def test_attributes_and_conventions():
    X = blobs()
    model = KMeans(n_clusters=6, random_state=1)
    labels = model.fit_predict(X)
    assert np.array_equal(labels, model.labels_) and np.array_equal(labels, model.predict(X))
    assert model.cluster_centers_.shape == (6, 5) and model.n_clusters_ == 6 and model.n_iter_ >= 1
    np.testing.assert_allclose(model.fit_transform(X), model.transform(X))
    assert list(model.get_feature_names_out()) == [f"kmeans{at}" for at in range(6)]
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-10)
    assert model.cluster_sizes_.sum() == len(X)
    again = KMeans(n_clusters=6, random_state=1).fit(X)
    assert np.array_equal(again.cluster_centers_, model.cluster_centers_)


def test_saved_and_loaded(tmp_path):
    X = blobs()
    model = KMeans(n_clusters=4).fit(X)
    model.save(tmp_path / "m.gradus")
    loaded = gradus.load(tmp_path / "m.gradus")
    assert isinstance(loaded, KMeans) and loaded.inertia_ == model.inertia_
    assert np.array_equal(loaded.predict(X), model.labels_)
    assert np.array_equal(loaded.cluster_centers_, model.cluster_centers_)


def test_digits_are_clustered_as_well_as_by_scikit_learn():
    X = datasets.load_digits().data
    assert KMeans(n_clusters=10, random_state=0).fit(X).inertia_ <= 1_165_142


def test_a_start_that_does_not_fit_is_refused():
    X = blobs()
    for init, word in [(X[:3], "6 clusters"), (X[:6, :2], "5 features"), ("random", "k-means")]:
        with pytest.raises(ValueError, match=word):
            KMeans(n_clusters=6, init=init).fit(X)
    with pytest.raises(ValueError, match="n_clusters"):
        KMeans(n_clusters=601).fit(X)


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    X = blobs(n=3000, k=30)
    model = KMeans(n_clusters=30, n_init=1, tol=0.0, warm_start=True).fit(X)
    first = model.n_iter_
    assert model.fit(X).n_iter_ < first


def test_measures_are_those_of_scikit_learn(tmp_path):
    if not COMMAND.exists():
        pytest.skip("the command is not built")
    X, y = datasets.load_wine(return_X_y=True)
    header = ",".join([*(f"x{at}" for at in range(X.shape[1])), "class"])
    rows = [",".join([*map(repr, map(float, row)), f"c{label}"]) for row, label in zip(X, y)]
    table, file = tmp_path / "wine.csv", tmp_path / "m.gradus"
    table.write_text("\n".join([header, *rows]))

    def run(*arguments):
        return subprocess.run([COMMAND, *map(str, arguments)], check=True, capture_output=True, text=True).stdout

    run("fit", "kmeans", table, "--ignore", "class", "--n-clusters", 4, "-o", file)
    found = json.loads(run("evaluate", file, table, "--target", "class", "--json"))["clusters"]
    frame = pd.DataFrame(X, columns=header.split(",")[:-1])
    labels = gradus.load(file).predict(frame)
    # Proline has nearly all of the variance, so features are standardised.
    scaled = X / X.std(axis=0)
    for name, value in {
        "adjusted_rand": metrics.adjusted_rand_score(y, labels),
        "normalized_mutual_info": metrics.normalized_mutual_info_score(y, labels),
        "adjusted_mutual_info": metrics.adjusted_mutual_info_score(y, labels),
        "homogeneity": metrics.homogeneity_score(y, labels),
        "completeness": metrics.completeness_score(y, labels),
        "v_measure": metrics.v_measure_score(y, labels),
        "davies_bouldin": metrics.davies_bouldin_score(scaled, labels),
        "calinski_harabasz": metrics.calinski_harabasz_score(scaled, labels),
    }.items():
        assert found[name] == pytest.approx(value, rel=1e-9), name
    assert found["silhouette"]["mean"] == pytest.approx(metrics.silhouette_score(scaled, labels), rel=1e-9)


def test_weights_count_as_repetitions():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    weights = rng.integers(0, 4, size=40)
    settings = {"n_clusters": 4, "init": X[:4], "tol": 0.0, "standardize": False}
    weighted = KMeans(**settings).fit(X, sample_weight=weights)
    repeated = KMeans(**settings).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)
