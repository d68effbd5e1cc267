"""Tests whose outcome says nothing about gradus, and tests that gradus fails on purpose, with the reasons.

Keys are patterns of `file::test`.
"""

#: Tests of scikit-learn's own machinery. They are not counted, whatever their outcome.
INTERNAL: dict[str, str] = {
    # How many iterations its solvers take, and what their warnings are called.
    r"test_logistic.py::test_max_iter": "expects warnings in the words of each solver, which name it",
    r"test_logistic.py::test_zero_max_iter": "asks the solvers for no iteration; gradus does at least one",
    r"test_logistic.py::test_warm_start_newton_solver": "two iterations at once equal two fits of one iteration",
    r"test_logistic.py::test_newton_cholesky_fallback_to_lbfgs": "expects one solver to give up for another",
    r"test_ridge.py::test_n_iter": "counts the iterations of each solver",
    r"test_ridge.py::test_lbfgs_solver_error": "expects `lbfgs` not to converge",
    r"test_coordinate_descent.py::test_warm_start$": "ten passes equal two fits of five passes",
    r"test_coordinate_descent.py::test_warm_start_convergence": "counts passes; a report of gradus has one at least",
    r"test_coordinate_descent.py::test_enet_coordinate_descent_raises_convergence": "expects no convergence in so many passes",
    r"test_sparse_coordinate_descent.py::test_sparse_enet_coordinate_descent": "expects no convergence in so many passes",
    r"test_svm.py::test_n_iter_libsvm": "counts the iterations of libsvm",
    r"test_svm.py::test_libsvm_convergence_warnings": "expects libsvm not to converge in so many steps",
    r"test_svm.py::test_linear_svm_convergence_warnings": "expects LIBLINEAR not to converge in so many steps",
    r"test_sparse.py::test_timeout": "expects libsvm not to converge in so many steps",
    # What one of its solvers cannot do, and gradus can.
    r"test_ridge.py::test_ridge_fit_intercept_sparse_error": "expects solvers without an intercept for sparse data",
    r"test_ridge.py::test_ridge_fit_intercept_sparse_sag": "expects a warning of the solver `sag`",
    r"test_ridge.py::test_ridge_positive_error_test": "expects solvers that cannot have positive coefficients",
    r"test_base.py::test_raises_value_error_if_positive_and_sparse": "expects no positive coefficients for sparse data",
    r"test_logistic.py::test_large_sparse_matrix": "expects solvers that refuse indices of 64 bits",
    r"test_logistic.py::test_dtype_match\[.*liblinear\]": "LIBLINEAR gives float64 for float32",
    r"test_svm.py::test_sparse_precomputed": "expects libsvm to refuse a sparse kernel matrix",
    r"test_svm.py::test_bad_input": "expects libsvm to refuse sparse samples after a fit to dense ones",
    r"test_ridge.py::test_regularization_limits_ridge_gcv\[csr_.*-svd-": "expects a warning of a mode without sparse data",
    # Parameters and warnings on their way out of scikit-learn.
    r"test_logistic.py::test_penalty_none": "expects a warning of the deprecated `penalty`",
    r"test_logistic.py::test_penalty_deprecated": "expects a deprecation",
    r"test_logistic.py::test_l1_ratio_None_deprecated": "expects a deprecation",
    r"test_logistic.py::test_lr_penalty_l1ratio_incompatible": "expects a warning of the deprecated `penalty`",
    r"test_logistic.py::test_l1_ratio_non_elasticnet": "expects a warning of the deprecated `penalty`",
    r"test_logistic.py::test_elasticnet_l1_ratio_err_helpful": "checks `l1_ratio` beside the deprecated `penalty`",
    r"test_logistic.py::test_logisticregression_warns_with_n_jobs": "expects a deprecation",
    r"test_svm.py::test_probability_raises_futurewarning": "expects a deprecation",
    r"test_svm.py::test_svc_nusvc_probA_probB_deprecated": "expects a deprecation",
    # Private attributes and functions, callbacks, hints to its solvers.
    r"test_logistic.py::test_logistic_regression_callback_support": "scikit-learn's callbacks",
    r"test_svm.py::test_svc_raises_error_internal_representation": "writes to a private attribute",
    r"test_svm.py::test_tweak_params": "writes to a private attribute",
    r"test_coordinate_descent.py::test_lassoCV_does_not_set_precompute": "counts calls inside of LassoCV",
    r"test_coordinate_descent.py::test_check_input_false": "hands over data that scikit-learn has not checked",
    r"test_coordinate_descent.py::test_overridden_gram_matrix": "checks a Gram matrix that gradus does not take",
    r"test_coordinate_descent.py::test_elasticnet_precompute_incorrect_gram": "checks a Gram matrix that gradus does not take",
    r"test_coordinate_descent.py::test_lasso_dual_gap": "the gap of scikit-learn's dual point; gradus finds a smaller one",
    # Its own estimators, beside which gradus is more exact.
    r"test_coordinate_descent.py::test_1d_multioutput_lasso_and_multitask_lasso_cv": "compares with MultiTaskLassoCV, solved to a tolerance of its own",
    r"test_logistic.py::test_logistic_cv\[": "compares with LogisticRegressionCV, solved to a tolerance of its own",
    r"test_logistic.py::test_logistic_cv_multinomial_score": "compares with LogisticRegressionCV, solved to a tolerance of its own",
}

#: Where gradus differs on purpose. They are counted as not passed.
DIFFERENT: dict[str, str] = {
    r"test_svm.py::test_negative_(sample_)?weight": "gradus refuses negative weights",
    r"test_base.py::test_inplace_data_preprocessing": "expects X to be overwritten with copy_X=False; gradus never does",
    r"test_coordinate_descent.py::test_enet_copy_X_False_check_input_False": "expects X to be overwritten",
    r"test_coordinate_descent.py::test_lasso_alpha_warning": "expects a warning for a penalty of 0, which gradus solves",
    r"test_coordinate_descent.py::test_enet_nonfinite_params": "the same error in other words",
    r"test_logistic.py::test_nan": "the same error in other words: gradus names row and column",
    r"test_logistic.py::test_c_inf_no_warning": "gradus warns that separable classes have no finite optimum",
    r"test_logistic.py::test_write_parameters": "writes to `coef_`; gradus predicts by the model, of which it is a copy",
    r"test_logistic.py::test_logistic_cv_folds_with_classes_missing": "writes to `coef_`",
    r"test_svm.py::test_svc_nonfinite_params": "expects features of 1e308 to overflow; gradus solves it",
    r"test_svm.py::test_svr_errors": "gradus refuses a kernel of the wrong shape in `fit`, not in `predict`",
    r"test_svm.py::test_svc_ovr_tie_breaking": "gradus always breaks ties by how sure the pairs are",
}
