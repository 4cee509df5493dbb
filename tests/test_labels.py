"""Names of curves: all different within a panel, and one method per name in a figure."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import pytest

from fedrepro import registry
from fedrepro.plotting import naming
from fedrepro.spec import axes, layout, panels
from fedrepro.spec.find import specs
from fedrepro.spec.model import Figure
from fedrepro.spec.read import load
from fedrepro.spec.tiers import TIERS

from . import project_specs
from .conftest import ROOT, SMALL

FIRST, SECOND = (
    """\
      - {algorithm: fedcavg, Q1: 2, Q2: [1, 5]}
      - {algorithm: fedcgds, zip: {m: [2, 6], Q1: [3, 2]}, Q2: 4}
""",
    "  b: {like: a, x: uplink_scalars}\n",
)


def doubled(figure: Figure) -> list[str]:
    """Every name of two curves of a panel, or for two methods of the figure."""
    doubles = []
    methods: dict[tuple[str, str], set[str]] = {}
    for panel in figure.panels:
        legends = {"labels": [c.label for c in panel.curves], "legend": naming.legends(panel, figure)}
        if panel.kind == "bars" or (panel.kind == "curves" and not axes.of(panel).along):
            legends["legend"] = naming.texts(layout.lines(panel.curves, panels.swept(panel)), panel.curves)
        for where, said in legends.items():
            doubles += [f"{panel.id}: {where}: {name}" for name, times in Counter(said).items() if times > 1]
        for curve in panel.curves:
            key = (curve.setting.problem, layout.method_of(curve))
            methods.setdefault(key, set()).add(curve.setting.algorithm)
    return doubles + [f"{name} is {sorted(names)}" for (_, name), names in methods.items() if len(names) > 1]


@pytest.mark.parametrize("tier", TIERS)
def test_no_two_curves_and_no_two_methods_of_the_project_share_a_name(tier: str) -> None:
    found = {
        f"{path.parent.name}/{path.stem}": doubled(project_specs.figure(path, tier))
        for path in specs(ROOT / "experiments")
    }
    assert {name: said for name, said in found.items() if said} == {}


def spec(folder: Path, curves: str, panel: str = "") -> Figure:
    path = folder / "small.yaml"
    path.write_text(
        SMALL.replace(FIRST, "".join(f"      - {{{c}}}\n" for c in curves.split("\n"))).replace(SECOND, panel)
    )
    text = path.read_text()
    path.write_text(text[: text.index("claims:")] + text[text.index("tiers:") :])
    return load(path, "quick")


@pytest.mark.parametrize(
    ("curves", "labels"),
    [
        ("algorithm: fedmgs\nalgorithm: fedmgs-sncp", ["FedMGS", "FedMGS, SNCP"]),
        ("algorithm: fedmgs-sncp, m: [2, 3]", ["FedMGS m=2", "FedMGS m=3"]),
        ("algorithm: fedmgs, m: [2, 3], label: mine", ["mine, m = 2", "mine, m = 3"]),
        ("algorithm: fedmgs, label: mine\nalgorithm: fedmavg, label: mine", ["mine (FedMGS)", "mine (FedMAvg)"]),
        ("algorithm: fedmgs\nalgorithm: fedmgs, rounds: 3", ["FedMGS rounds=5", "FedMGS rounds=3"]),
        (
            "algorithm: sncp\nalgorithm: sncp, role: level",
            ["SNCP (centralized) role=curve", "SNCP (centralized) role=level"],
        ),
        ("algorithm: fedmgs, m: [2, 2]\nalgorithm: fedmgs, m: 2", ["FedMGS"]),
    ],
)
def test_curves_are_told_apart(tmp_path: Path, curves: str, labels: list[str]) -> None:
    figure = spec(tmp_path, curves)
    assert [curve.label for curve in figure.panels[0].curves] == labels
    assert doubled(figure) == []


def test_the_methods_of_a_figure_are_told_apart_in_all_its_panels_and_tables(tmp_path: Path) -> None:
    table = "  t: {kind: table, options: {rows: algorithm, columns: m}, curves: [{algorithm: fedmgs-sncp, m: 2}]}\n"
    figure = spec(tmp_path, "algorithm: fedmgs", table)
    assert list(panels.table(figure.panels[1]).cells()) == [("FedMGS, SNCP", "m=2")]
    assert doubled(figure) == []


def test_a_sweep_has_a_line_for_each_of_two_methods_of_one_label(tmp_path: Path) -> None:
    figure = spec(tmp_path, "algorithm: [fedmgs, fedmgs-sncp], m: [2, 3]")
    assert list(layout.lines(figure.panels[0].curves, "m")) == ["FedMGS", "FedMGS, SNCP"]


def test_methods_of_one_label_and_problem_are_distinguished_by_suffixes() -> None:
    said = Counter((entry.problem, entry.label, entry.suffix) for entry in registry.methods().values())
    assert [key for key, times in said.items() if times > 1] == []
    assert registry.called(["fedmgs"]) == {"fedmgs": "FedMGS"}


def test_a_method_without_rounds_is_a_level_by_itself_where_curves_run_along_the_axis(tmp_path: Path) -> None:
    text = "algorithm: kmeans++\nalgorithm: kmeans++, role: curve\nalgorithm: fedmgs"
    assert [curve.role for curve in spec(tmp_path, text).panels[0].curves] == ["level", "curve", "curve"]
    swept = "  s: {x: parameter, options: {parameter: n_init}, curves: [{algorithm: kmeans++, n_init: [1, 2]}]}\n"
    assert {curve.role for curve in spec(tmp_path, "algorithm: fedmgs", swept).panels[1].curves} == {"curve"}


def test_two_files_of_ones_own_are_told_apart_by_their_names(tmp_path: Path) -> None:
    figure = spec(tmp_path, "algorithm: fedmgs\nalgorithm: fedmavg")
    (first, second), files = (
        figure.panels[0].curves,
        [{"path": "a/x.csv", "labels": "g"}, {"path": "b/y.npy", "labels": ""}],
    )
    curves = [
        dataclasses.replace(
            c, setting=dataclasses.replace(c.setting, names={"dataset": alias}, dataset="file", dataset_params=of)
        )
        for c, alias, of in zip((first, second), ("here", "there"), files, strict=True)
    ]
    assert naming.aliases(curves, kinds=("dataset",)) == {"here": "x.csv", "there": "y.npy"}
    files[1]["path"] = "b/x.csv"
    assert naming.aliases(curves, plain=True, kinds=("dataset",))["there"].startswith("path = b/x.csv, labels = ")
