"""Where gradus differs from scikit-learn on purpose: a pattern of test names, and the reason."""

DIFFERENT: dict[str, str] = {
    r"::test_max_iter\b": "counts the iterations of scikit-learn's solver",
    r"::test_n_iter_libsvm": "counts the iterations of libsvm",
    r"::test_zero_max_iter": "gradus does at least one iteration",
    r"::test_ridge_fit_intercept_sparse_error": "expects an error of solvers without an intercept for sparse data",
    r"::test_ridge_fit_intercept_sparse_sag": "expects a warning of the solver `sag`",
    r"::test_logistic_regression_callback_support": "scikit-learn's callbacks",
    r"::test_negative_(sample_)?weight": "gradus refuses negative weights",
    r"::test_inplace_data_preprocessing": "expects X to be overwritten with copy_X=False; gradus never does",
    r"::test_elasticnet_precompute_incorrect_gram": "checks a Gram matrix that gradus does not take",
    r"::test_lasso_alpha_warning": "expects a warning for a penalty of 0, which gradus solves",
}
