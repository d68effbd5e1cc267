"""Every estimator through scikit-learn's own checks."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import gradus
from gradus._base import DESCRIBED

#: What a recommender cannot be asked: its input is pairs of user and item, not a matrix of features.
PAIRS = {
    "check_all_zero_sample_weights_error": "weighs rows of features",
    "check_complex_data": "expects the message of scikit-learn's own check of features",
    "check_dtype_object": "fits features of type object, with ten columns",
    "check_estimator_sparse_array": "a sparse matrix is users × items here, and predict takes pairs",
    "check_estimator_sparse_matrix": "a sparse matrix is users × items here, and predict takes pairs",
    "check_estimators_dtypes": "fits features of twenty columns",
    "check_estimators_empty_data_messages": "fits a matrix without columns",
    "check_estimators_nan_inf": "puts NaN into features",
    "check_fit2d_1feature": "fits a single column of features",
    "check_fit2d_1sample": "fits a single row of ten features",
    "check_fit2d_predict1d": "fits features, then predicts one row of them",
    "check_n_features_in_after_fitting": "pairs have two columns, whatever the number of items",
    "check_positive_only_tag_during_fit": "fits features",
    "check_sample_weight_equivalence_on_dense_data": "weighs rows of features",
    "check_sample_weight_equivalence_on_sparse_data": "weighs rows of features",
    "check_sample_weights_shape": "weighs rows of features",
}

#: What a model that ranks cannot be asked: it is scored by what users had not seen in training.
RANKS = {
    "check_fit_score_takes_y": "scores the pairs of training, after which nothing is left to rank",
    "check_pipeline_consistency": "scores the pairs of training, after which nothing is left to rank",
}


#: What the check asks of every estimator with `predict_proba`: that it is a classifier.
PROBABLE = {
    "check_estimator_sparse_array": "looks up the tags of a classifier, which a mixture is not",
    "check_estimator_sparse_matrix": "looks up the tags of a classifier, which a mixture is not",
}


#: With a number of clusters that is given, weights count as repetitions (test_kmeans.py).
CHOSEN = {
    "check_sample_weight_equivalence_on_dense_data": "chooses the number of clusters by distances between rows",
    "check_sample_weight_equivalence_on_sparse_data": "chooses the number of clusters by distances between rows",
}

#: Weights multiply losses, and a sample of weight 2 is in one batch where two samples are in two.
BATCHES = {
    "check_sample_weight_equivalence_on_dense_data": "takes steps along gradients of batches",
    "check_sample_weight_equivalence_on_sparse_data": "takes steps along gradients of batches",
}

#: By the kind of model.
EXPECTED = {"gmm": PROBABLE, "kmeans": CHOSEN, "mlp": BATCHES, "mlpregressor": BATCHES, "autoencoder": BATCHES}


def expected(estimator):
    """The checks that fail, and the reason."""
    described = DESCRIBED[estimator._kind]
    if "recommend" not in described["capabilities"]:
        return EXPECTED.get(estimator._kind, {})
    return {**PAIRS, **RANKS} if described["implicit"] else PAIRS


#: The checks compare two fits to seven digits; as with scikit-learn's own solvers they are asked for that.
PRECISE = {"logistic": {"tol": 1e-10}}

#: The checks fit every estimator some fifty times; fewer draws from the posterior do for them. They fit features that are
#: no whole numbers, which Gibbs sampling of words refuses.
SHORT = {
    "bayes": {"max_iter": 20, "burn_in": 5},
    "lda": {"algorithm": "variational"},
    "autoencoder": {"hidden": (16,), "max_iter": 20},
    "pixelcnn": {"hidden": (8,), "max_iter": 5},
    "vae": {"hidden": (8,), "max_iter": 5, "test_samples": 5},
    "diffusion": {"hidden": (8,), "max_iter": 5},
    "gan": {"hidden": (8,), "max_iter": 5},
    "mlp": {"hidden": (32,), "max_iter": 60},
    "mlpregressor": {"hidden": (32,), "max_iter": 240},
}


@parametrize_with_checks(
    [estimator(**PRECISE.get(name, {}), **SHORT.get(name, {})) for name, estimator in gradus.models().items()],
    expected_failed_checks=expected,
    xfail_strict=True,
)
def test_sklearn(estimator, check):
    check(estimator)
