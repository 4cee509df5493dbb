r"""Matrix completion with a split given by the data: ``completion`` on the user's own training and test ratings.

The problem is that of ``fedrepro.problems.completion``, except that the split is not drawn: ``SplitRatings.test`` marks
the test ratings. A client may have no test ratings, or no training ratings.

Source: fedmc (1), (2) and section 5.1, whose split is random.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fedrepro.errors import ParameterError, UserError
from fedrepro.problems.completion import problem as completion
from fedrepro.problems.completion import rating_buckets
from fedrepro.problems.completion.problem import Completion
from fedrepro.problems.completion.rating_buckets import _columns, _select
from fedrepro.registry import add_problem

ARTIFACTS = completion.ARTIFACTS
PARAMETERS = {name: default for name, default in completion.PARAMETERS.items() if name not in ("train", "items")}


class SplitCompletion(Completion):
    """The completion problem in memory, with a given split.

    The parameters are those of ``Completion`` without ``train``, ``items`` and ``rng``.

    data : ``SplitRatings`` with ``test``. client : (users,) the client 0 .. p-1 of each *user*, -1 for a user who is
    left out; None for a single client.

    Raises UserError if the data cannot work, and ParameterError if a parameter cannot.

    Example:
    >>> import numpy as np
    >>> from fedrepro import SplitCompletion, SplitRatings
    >>> user, item = np.divmod(np.arange(96), 8)
    >>> ratings = SplitRatings(user, item, 1.0 + (user + item) % 5, 12, 8, test=np.arange(96) % 4 == 0)
    >>> U0, V0 = SplitCompletion(ratings, client=np.arange(12) % 3, r=2).initial(trial=1)
    >>> U0.shape, V0.shape
    ((12, 2), (8, 2))
    """

    name = "completion-split"
    parameters = PARAMETERS
    stored_parameters = ("range",)  # type: ignore[assignment]
    probes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}  # own data are not at hand to be measured on

    def __init__(self, data: Any, client: Any = None, *, threads: int | None = None, **parameters: Any) -> None:
        SplitCompletion.check(parameters, {})
        values = {**PARAMETERS, **parameters}
        self._set_up(arrange(data, client, values["range"]), values, threads)

    @classmethod
    def prepare(cls, folder: Path, data: Any, client: np.ndarray | None, parameters: Mapping[str, Any]) -> None:
        """Write ``SplitRatings`` as the problem uses them; ``client`` is that of each *user*."""
        rating_buckets.write(folder, arrange(data, client, {**PARAMETERS, **parameters}["range"]))


def arrange(data: Any, client: Any, scale: Any = None) -> rating_buckets.Stored:
    """Arrange ``SplitRatings`` in buckets with their own split; arguments as for ``rating_buckets.arrange``.

    Raises UserError if the data has no split, and ParameterError if the split leaves no training rating.
    """
    test = getattr(data, "test", None)
    if test is None:
        raise UserError("ratings: these have no split of their own; use the problem completion, which draws one")
    test = np.asarray(test)
    if test.dtype != bool or test.shape != np.shape(data.user):
        raise UserError(f"test: must give true or false for each rating, {np.shape(data.user)}, not {test.shape}")
    if test.all():
        raise ParameterError("split", "leaves no rating to train with")
    whole = rating_buckets.arrange(data, client, 1.0, None, scale)
    row = np.repeat(np.arange(whole.train.ptr.size - 1), np.diff(whole.train.ptr))
    row_of = np.full(data.users, -1, dtype=np.int64)
    row_of[whole.user] = np.arange(whole.user.size)
    test_pairs = (row_of[np.asarray(data.user)] * data.items + np.asarray(data.item))[test]
    is_test = np.isin(row * data.items + whole.train.index.astype(np.int64), test_pairs)
    train, test_buckets = (_select(*whole.train.arrays, mask) for mask in (~is_test, is_test))
    if train.count == 0:
        raise ParameterError("split", "leaves no rating to train with")
    columns = _columns(train, whole.starts, data.items)
    ptr, rows, codes = columns
    return dataclasses.replace(whole, train=train, test=test_buckets, col_ptr=ptr, col_row=rows, col_code=codes)


add_problem(
    SplitCompletion,
    "Matrix completion with training and test ratings given by the data",
    data_kind="split-ratings",
    artifacts=ARTIFACTS,
)
