"""Everything the report says, as data: one section a figure, with claims, freshness, published numbers, ledger rows."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro import claims, drawing, results
from fedrepro import plan as planning
from fedrepro.errors import UserError
from fedrepro.plotting import data
from fedrepro.plotting.data import Source
from fedrepro.report import ledger
from fedrepro.report.effects import Measured, measure
from fedrepro.report.ledger import Row
from fedrepro.spec import checks, nodes
from fedrepro.spec.model import Claim, Curve, Figure, Panel
from fedrepro.spec.read import load

BEST = "best"
TIERS = ("paper", "quick", "smoke")
VERDICTS = (claims.REPRODUCED, claims.NOT_REPRODUCED, claims.NOISE, claims.NOT_TESTED)


@dataclass(frozen=True)
class Section:
    """One figure: its results at one tier (``source`` is None where there are none) and what follows from them.

    ``stale`` says what changed since the results were computed, ``unchecked`` why that cannot be told.
    """

    path: Path
    figure: Figure
    source: Source | None
    claims: tuple[claims.Row, ...]
    stale: tuple[str, ...]
    unchecked: tuple[str, ...]
    published: tuple[Published, ...]
    tiers: tuple[str, ...]

    @property
    def name(self) -> str:
        """``paper/figure``."""
        return f"{self.figure.paper}/{self.figure.figure}"

    def count(self, verdict: str) -> int:
        """How many of its claims have this verdict."""
        return sum(row.verdict == verdict for row in self.claims)


@dataclass(frozen=True)
class Published:
    """A published number of a panel of curves beside the nearest curve of ours there."""

    panel: str
    label: str
    x: float | None
    value: float
    ours: float
    curve: str


@dataclass(frozen=True)
class Report:
    """All sections, the ledger rows, and per row (``paper id``) the effects measured in the sections' results."""

    sections: tuple[Section, ...]
    ledger: tuple[Row, ...]
    effects: Mapping[str, tuple[Measured, ...]]

    def count(self, verdict: str) -> int:
        """How many claims of all figures have this verdict."""
        return sum(section.count(verdict) for section in self.sections)

    def touching(self, name: str) -> list[Row]:
        """The ledger rows that touch a figure."""
        return [row for row in self.ledger if name in row.figures]


def gather(paths: Iterable[Path], tier: str, root: Path, experiments: Path) -> Report:
    """All specs' results: at ``tier``, or with ``best`` at the paper tier where there are any, else at quick."""
    sections = tuple(sorted((section(path, tier, root) for path in paths), key=_place))
    rows = tuple(ledger.load_all(experiments))
    sources = {s.name: s.source for s in sections if s.source is not None}
    effects = {row.id: tuple(_measure(row, sources)) for row in rows}
    return Report(sections, rows, effects)


def _place(section: Section) -> tuple[int, bool, list[tuple[int, str]]]:
    """Papers together, figures by number (fig3 before fig10, figS1 after), tables last."""
    parts = re.findall(r"\d+|\D+", section.figure.figure)
    number = [(int(part), "") if part.isdigit() else (0, part) for part in parts]
    return ledger.order(section.figure.paper), section.figure.figure.startswith("table"), number


def _measure(row: Row, sources: Mapping[str, Source]) -> Iterator[Measured]:
    for effect in row.effects:
        source = sources.get(effect.figure)
        if source is None:
            continue
        try:
            yield measure(effect, source)
        except UserError as error:  # a tier or a --set option may leave out the curves
            yield Measured(effect.figure, source.figure.tier, f"cannot be read from these results: {error}")


def section(path: Path, tier: str, root: Path) -> Section:
    """One figure's section."""
    wanted = TIERS[:2] if tier == BEST else (tier,)
    found = [t for t in TIERS if _has(path, t, root)]
    best = next((t for t in wanted if t in found), None)
    if best is None:
        figure = load(path, wanted[0])
        return Section(path, figure, None, tuple(_untested(figure, wanted)), (), (), (), tuple(found))
    ((figure, frame, sidecar),) = drawing.with_results([path], best, root, must=True)
    base = results.stem(root, figure)
    table = drawing.results_file(base)
    assert table is not None
    stale, unchecked = freshness(figure, sidecar, table)
    source = Source(figure, frame, sidecar, _points(base))
    rows = tuple(
        _explained(row, claim, source)
        for row, claim in zip(claims.table(figure, frame, sidecar), figure.claims, strict=True)
    )
    return Section(path, figure, source, rows, stale, unchecked, tuple(published(source)), tuple(found))


def _has(path: Path, tier: str, root: Path) -> bool:
    node = nodes.read(path)
    paper, name = (str(getattr(node.get(key), "value", "")) for key in ("paper", "figure"))
    return drawing.results_file(root / tier / paper / name) is not None


def _points(base: Path) -> Any:
    import pandas as pd

    path = base.with_name(base.name + ".points.csv")
    return pd.read_csv(path) if path.exists() else None


def _untested(figure: Figure, tiers: tuple[str, ...]) -> Iterator[claims.Row]:
    why = f"no results at the {' or the '.join(tiers)} tier"
    for claim in figure.claims:
        yield claims.Row(
            f"{figure.paper}/{figure.figure}", figure.tier, claim.id, claim.says, claim.where, claim.check,
            claims.NOT_TESTED, claims.NOT_TESTED, why, (), 0,
        )  # fmt: skip


def _explained(row: claims.Row, claim: Claim, source: Source) -> claims.Row:
    """The verdict, with what is behind it: data that are missing where a curve has none, trials that diverge."""
    why = row.why
    missing = list(source.sidecar.get("missing", ()))
    if row.verdict == claims.NOT_TESTED and "no finished trials" in why and missing:
        why += f": {missing[0]}" + (f", and {len(missing) - 1} more" if len(missing) > 1 else "")
    for curve in _compared(claim, source.figure):
        rows = source.frame[source.frame["series"] == curve.setting.series]
        runs = rows.groupby("trial")["status"].first()
        if (runs == "diverged").any():
            why += f"; '{curve.label}' diverges in {(runs == 'diverged').sum()} of {len(runs)} trials"
    return dataclasses.replace(row, why=why)


def _compared(claim: Claim, figure: Figure) -> list[Curve]:
    """The curves a claim's check reads, each once."""
    panels = {panel.id: panel for panel in figure.panels}
    found: dict[str, Curve] = {}
    for _, function, keywords in checks.readers(checks.parse(claim.check)):
        panel = panels[checks.constant(keywords["panel"]) if "panel" in keywords else claim.panel]
        own = (*checks.READERS[function], "panel", "metric")
        curve = checks.pick(panel.curves, {k: checks.constant(v) for k, v in keywords.items() if k not in own})
        found.setdefault(curve.setting.series, curve)
    return list(found.values())


# -- freshness ---------------------------------------------------------------------------------------------------------


def freshness(figure: Figure, sidecar: Mapping[str, Any], csv: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What changed since these results were computed, and what of it cannot be told here."""
    if not sidecar:
        return (), ("there is no sidecar beside the CSV",)
    stale = []
    content = gzip.decompress(csv.read_bytes()) if csv.suffix == ".gz" else csv.read_bytes()
    if hashlib.sha256(content).hexdigest() != sidecar.get("csv_sha256"):
        stale.append("the CSV is not the one its sidecar describes")
    plan = planning.make([figure], stand_in=bool(sidecar.get("stand_ins")))
    if results.plan_id(plan, 0) == sidecar.get("plan"):
        return tuple(stale), ()
    absent = {s.dataset for s in plan.sources.values() if s.state in ("absent", "damaged", "stand-in")} & {
        d["dataset"] for d in sidecar.get("datasets", ()) if d["state"] in ("present", "variant")
    }
    changed = [*_changed_spec(figure, sidecar), *_changed_data(plan, sidecar, absent)]
    if absent and not changed:
        names = ", ".join(sorted(absent))
        return tuple(stale), (f"computed on {names}, absent here: whether anything changed cannot be told",)
    return tuple(stale + (changed or ["the code that computes it changed"])), ()


def _changed_spec(figure: Figure, sidecar: Mapping[str, Any]) -> list[str]:
    now = json.loads(json.dumps([dataclasses.asdict(s) for s in figure.settings()], default=str))
    for facts in now:
        facts.pop("names")
    before = sidecar.get("settings", [])
    said = ["the spec changed"] if now != before else []
    if figure.wanted_trials != sidecar.get("trials_wanted", figure.wanted_trials):
        said.append(f"the spec asks for {figure.wanted_trials} trials, not {sidecar['trials_wanted']}")
    return said


def _changed_data(plan: planning.Plan, sidecar: Mapping[str, Any], absent: set[str]) -> list[str]:
    before = {(d["dataset"], d["fingerprint"]) for d in sidecar.get("datasets", ()) if d["fingerprint"]}
    names = {name for name, _ in before} - absent
    standing = set(sidecar.get("stand_ins", ()))
    said = []
    for source in plan.sources.values():
        if source.usable and source.dataset in names and (source.dataset, source.fingerprint) not in before:
            here = f"{source.dataset} is here now, and the results are on its stand-in"
            said.append(here if source.dataset in standing else f"the data of {source.dataset} changed")
    return list(dict.fromkeys(said))


# -- published numbers -------------------------------------------------------------------------------------------------


def published(source: Source) -> Iterator[Published]:
    """The published numbers of panels of curves, each with our nearest curve (tables hold theirs themselves)."""
    for panel in source.figure.panels:
        if panel.kind != "curves" or not data.runs_along(panel):
            continue
        for item in panel.published:
            if "y" not in item:
                continue
            places = np.atleast_1d(item["x"]).tolist() if "x" in item else [None]
            for x, y in zip(places, np.atleast_1d(item["y"]).tolist(), strict=True):
                ours, curve = _nearest(source, panel, x, float(y))
                yield Published(panel.id, str(item.get("label", "")), x, float(y), ours, curve)


def _nearest(source: Source, panel: Panel, x: float | None, y: float) -> tuple[float, str]:
    """Value and label of the curve nearest to (x, y), or to the level y at its end; nan where there is none."""
    best, label, distance = float("nan"), "", float("inf")
    for curve in panel.curves:
        level = curve.role == "level"
        average = data.average(data.trials(source, curve, panel, x="round" if level else panel.x))
        if average is None or level != (x is None) or (x is not None and not average.x[0] <= x <= average.x[-1]):
            continue
        ours = float(average.mean[-1] if x is None else np.interp(x, average.x, average.mean))
        log = panel.yscale == "log" and ours > 0 and y > 0
        far = abs(np.log(ours / y)) if log else abs(ours - y)
        if far < distance:
            best, label, distance = ours, curve.label, far
    return best, label
