"""The restricted unpickler: arrays of bytes from both Pythons, nothing else."""

from __future__ import annotations

import collections
import os
import pickle

import numpy as np
import pytest

from fedrepro.data.formats.pickles import arrays_of_bytes
from fedrepro.errors import UserError
from tests import data_copies


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_bytes_come_back(protocol, order):
    data = np.asarray(np.arange(24, dtype=np.uint8).reshape(4, 6), order=order)
    found = arrays_of_bytes("x", pickle.dumps({"data": data, "labels": [1, 2]}, protocol=protocol))
    np.testing.assert_array_equal(found["data"], data)
    assert found["labels"] == [1, 2]


def test_batches_written_by_python_2():
    data = np.arange(12, dtype=np.uint8).reshape(2, 6)
    found = arrays_of_bytes("x", data_copies.python2_batch(data, [3, 4]))
    np.testing.assert_array_equal(found["data"], data)
    assert found["labels"] == [3, 4]


class Evil:
    def __reduce__(self):
        return os.system, ("touch pwned",)


@pytest.mark.parametrize(
    "content",
    [
        {"data": Evil()},
        {"data": np.zeros(3)},
        {"data": np.array([{}], dtype=object)},
        {"data": np.zeros(2, dtype="V8")},
        {"data": collections.OrderedDict()},
        {"data": np.float64(1)},
        Evil(),
    ],
)
def test_anything_else_is_refused(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="x is not a pickle of plain arrays of bytes"):
        arrays_of_bytes("x", pickle.dumps(content))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("raw", [b"", b"garbage", b"\x80\x04", pickle.dumps([1, 2]), b"<html></html>"])
def test_broken_pickles(raw):
    with pytest.raises(UserError, match=r"x is not a pickle of plain arrays|x contains no dictionary"):
        arrays_of_bytes("x", raw)


def test_a_forged_shape_is_refused():
    good = pickle.dumps({"data": np.zeros((2, 3), dtype=np.uint8)}, protocol=2)
    forged = good.replace(b"K\x02K\x03\x86", b"K\x09K\x09\x86")
    assert forged != good
    with pytest.raises(UserError, match="x is not a pickle of plain arrays of bytes"):
        arrays_of_bytes("x", forged)
