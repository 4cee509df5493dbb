"""Load a figure's results as one tidy pandas table, with the parameters and measurements of every curve."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedrepro.results import missing, parameter_columns, staleness
from fedrepro.results.consistency import recorded
from fedrepro.results.read import largest_tier, with_results
from fedrepro.results.schema import BESIDE, KEYS, MEASURED, Sidecar
from fedrepro.spec.find import find_spec, project
from fedrepro.spec.model import Figure
from fedrepro.spec.tiers import BEST

if TYPE_CHECKING:
    import pandas as pd


class StaleResults(UserWarning):
    """Results that today's code, spec or data would not compute."""


def load(figure: str | Path, tier: str | None = None, results: str | Path | None = None) -> pd.DataFrame:
    """Return the results of a figure, one measurement per row and panel.

    The rows of a curve are repeated for each panel that shows it. The CSV has them once, and so have
    ``frame.query("panel == 'a'")`` for one panel and ``frame.drop(columns=["panel", "label"]).drop_duplicates()`` for
    the whole figure.

    figure : ``paper/figure``, the path of a spec, or the id of a claim. tier : ``paper``, ``quick`` or ``smoke``; None
    for the first of these that has results. results : folder of the results; None for that of the current project.

    Columns: ``panel`` and ``label`` (the curve as the legend calls it), then those of the CSV, read as pandas reads
    them: ``series``, ``algorithm``, ``dataset``, ``partition``, one for each parameter of the method, the problem, the
    dataset and the partition that any curve has, with its default where the spec does not set it (``m``,
    ``problem.rho``, ``dataset.n``, ``partition.P``), ``trial``, ``status``, ``round``, the counts of numbers and bits
    sent, ``metric`` and ``value``. The meaning of each is in the sidecar under ``columns``. ``frame.attrs``
    has the sidecar's facts under ``sidecar``, and under ``stale`` what has changed since the results were computed; if
    anything has, there is also a warning (``StaleResults``). Raises UserError where there is no such figure or it has
    no results.

    Example:
        >>> from fedrepro.results import load
        >>> frame = load("fedc/fig5", tier="paper")  # doctest: +SKIP
        >>> frame.query("panel == 'a'").groupby(["label", "trial"])["value"].last()  # doctest: +SKIP
    """
    root = Path(results) if results is not None else project() / "results"
    path = find_spec(str(figure))
    missing.require(path, tier or BEST, root, named_by=missing.ARGUMENT)
    drawn, frame, sidecar = next(with_results([path], largest_tier(path, tier or BEST, root), root))
    made = of_figure(drawn, frame, sidecar)
    made.attrs["sidecar"] = dataclasses.asdict(sidecar)
    made.attrs["stale"] = stale = staleness.stale(drawn, sidecar, root)
    warn_of_stale(drawn, stale)
    return made


def warn_of_stale(figure: Figure, stale: Sequence[str]) -> None:
    """Warn the caller of the calling function that results of a figure are stale, if there are reasons."""
    if stale:
        name = f"{figure.paper}/{figure.figure}"
        warnings.warn(staleness.in_words({(name, figure.tier): stale}), StaleResults, stacklevel=3)


def of_figure(figure: Figure, frame: pd.DataFrame, sidecar: Sidecar) -> pd.DataFrame:
    """Return the rows of a figure's results with their panel, label and parameters; see ``load``."""
    import pandas as pd

    settings = sidecar.settings or [recorded(setting) for setting in figure.settings()]
    parameters = parameter_columns.table(settings)
    rows = _places(figure).merge(frame, on="series", how="left").merge(parameters, on="series", how="left")
    table = rows[[*BESIDE, *KEYS, *parameter_columns.order(settings), *MEASURED]]
    return pd.DataFrame(table[table["trial"].notna()].astype({"trial": int})).reset_index(drop=True)


def _places(figure: Figure) -> pd.DataFrame:
    """Return a table of the panels, labels and series of all curves."""
    import pandas as pd

    rows = [(panel.id, curve.label, curve.setting.series) for panel in figure.panels for curve in panel.curves]
    return pd.DataFrame(rows, columns=[*BESIDE, "series"]).drop_duplicates()
