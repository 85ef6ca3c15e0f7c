"""Kernels with their own reference implementation."""

import numpy as np
import pytest

from spacy_sparsecrf.kernels.exp import exp_shifted, exponentiate

from .kernel_functions import compiled


@pytest.mark.parametrize("shift", [0.0, 3.5, -100.0])
def test_exp_is_accurate_to_a_few_units_in_the_last_place(shift):
    x = shift - np.concatenate((np.linspace(0.0, 40.0, 4000), np.linspace(40.0, 700.0, 4000)))
    row = x.copy()
    exp_shifted(row, len(row), shift)
    np.testing.assert_allclose(row, np.exp(x - shift), rtol=1e-14)


def test_exp_of_very_negative_numbers_is_tiny_but_not_zero():
    row = np.array([-1e9, -800.0, -np.inf, 0.0, 0, 0, 0, 0])
    exp_shifted(row, 8, 0.0)
    assert (row[:3] < 1e-307).all()
    assert (row[:3] > 0).all()
    assert row[3] == 1.0


@pytest.mark.parametrize("far", [np.nan, np.inf, -np.inf, -800.0, 705.0, 710.0])
def test_exp_beyond_the_range_of_numbers(far):
    row = np.array([1.0, far, -2.0])
    with np.errstate(over="ignore"):
        wanted = np.exp(row)
    compiled(exponentiate)(row)
    np.testing.assert_allclose(row, wanted, rtol=1e-14)
