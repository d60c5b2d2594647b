"""Estimator checks of scikit-learn: those that apply to graphs, and why others do not.

Most of scikit-learn's checks call ``fit(X, y)`` with arrays. A network is not an array: it has no
rows that could be permuted, dropped or cast, since rows are linked.
"""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from vhe.estimators import VHE, Estimator, PairVHE

ARRAYS = "fits arrays (X, y); these estimators fit a TextNetwork"
SAMPLES = "permutes or drops rows; the vertices of a network are linked"
FEATURES = "counts columns; texts have none"
NOT_APPLICABLE = {
    "check_array_api_input": ARRAYS,
    "check_complex_data": ARRAYS,
    "check_dict_unchanged": ARRAYS,
    "check_dont_overwrite_parameters": ARRAYS + "; tests/test_estimators.py checks the same",
    "check_dtype_object": ARRAYS,
    "check_estimator_sparse_array": ARRAYS,
    "check_estimator_sparse_matrix": ARRAYS,
    "check_estimator_sparse_tag": ARRAYS,
    "check_estimators_dtypes": ARRAYS,
    "check_estimators_empty_data_messages": ARRAYS + "; tests/test_odd_networks.py has small ones",
    "check_estimators_fit_returns_self": ARRAYS + "; tests/test_estimators.py checks the same",
    "check_estimators_nan_inf": ARRAYS,
    "check_estimators_overwrite_params": ARRAYS + "; tests/test_estimators.py checks the same",
    "check_estimators_pickle": ARRAYS + "; models are saved in folders, without pickles",
    "check_estimators_unfitted": "expects NotFittedError; commands that open a model without "
    "scikit-learn raise VHEError",
    "check_f_contiguous_array_estimator": ARRAYS,
    "check_fit1d": ARRAYS,
    "check_fit2d_1feature": ARRAYS,
    "check_fit2d_1sample": ARRAYS,
    "check_fit2d_predict1d": ARRAYS,
    "check_fit_check_is_fitted": ARRAYS,
    "check_fit_idempotent": ARRAYS + "; tests/test_estimators.py checks the same",
    "check_fit_score_takes_y": "expects y in the signature of fit; a network contains its labels",
    "check_methods_sample_order_invariance": SAMPLES,
    "check_methods_subset_invariance": SAMPLES,
    "check_n_features_in": FEATURES,
    "check_n_features_in_after_fitting": FEATURES,
    "check_pipeline_consistency": ARRAYS,
    "check_positive_only_tag_during_fit": ARRAYS,
    "check_readonly_memmap_input": ARRAYS,
}


def name_of(check: Any) -> str:
    return str(getattr(check, "func", check).__name__)


@pytest.mark.parametrize("cls", [VHE, PairVHE])
def test_the_checks_that_apply_pass(cls: type[Estimator]) -> None:
    passed = set()
    for estimator, check in estimator_checks_generator(cls()):
        if name_of(check) not in NOT_APPLICABLE:
            check(estimator)
            passed.add(name_of(check))
    assert passed >= {
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_get_params_invariance",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
    }


def test_every_exception_is_a_check_of_scikit_learn() -> None:
    known = {name_of(check) for _, check in estimator_checks_generator(VHE())}
    assert set(NOT_APPLICABLE) <= known
