"""The digits of scikit-learn, read from its file."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from sklearn.datasets import load_digits

from fedrepro.datasets import digits


def test_they_are_those_of_the_library() -> None:
    pixels, labels = digits.read()
    theirs = load_digits()
    np.testing.assert_array_equal(pixels, theirs.data)
    np.testing.assert_array_equal(labels, theirs.target)
    own = digits.Digits(n=50, scale=2).load()
    np.testing.assert_array_equal(own.X, theirs.data[:50].T / 2)
    np.testing.assert_array_equal(own.labels, theirs.target[:50])


def test_the_library_is_not_imported_for_them() -> None:
    script = (
        "import sys; from fedrepro.datasets import digits; digits.Digits().load(); sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
