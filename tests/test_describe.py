"""``fedrepro describe`` and ``fedrepro list``: every name is found, explained in full, and its figures are named."""

from __future__ import annotations

import dataclasses
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from fedrepro import docstrings, registry
from fedrepro.claims import evidence
from fedrepro.claims.origin import STUDIES
from fedrepro.cli import describe as command
from fedrepro.cli.main import COMMANDS, main
from fedrepro.data.imports import adopt
from fedrepro.glossary import entries, lookup, output_words
from fedrepro.glossary.uses import uses
from fedrepro.lexicon.vocabulary import lexicon
from fedrepro.spec import axes, claim_grammar, keys
from fedrepro.spec.find import specs
from fedrepro.spec.model import Figure
from fedrepro.spec.panels import KINDS
from fedrepro.spec.tiers import TIERS
from tests import data_copies

from . import project_specs
from .conftest import ROOT

TABLES: dict[str, dict[str, Any]] = {
    "algorithm": registry.methods(),
    "problem": registry.problems(),
    "dataset": registry.datasets(),
    "partition": registry.partitions(),
}
COMPLETION = ("completion", "completion-split", "completion-steps")
"""The problems with the metrics of matrix completion."""
REGISTERED = [(kind, name) for kind, table in TABLES.items() for name in table]

Call = Callable[..., Result]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def told(*words: str) -> str:
    found = CliRunner().invoke(main, ["describe", *words])
    assert found.exit_code == 0, found.output
    return found.stdout


def headings(*words: str) -> list[str]:
    return [line for line in told(*words).splitlines() if line and not line.startswith(" ")]


# What docstrings say --------------------------------------------------------------------------------------------------


def parameters(kind: str, name: str) -> dict[str, Any]:
    entry = TABLES[kind][name]
    return dict(entry.parameters) if kind == "problem" else entry.parameters()


@pytest.mark.parametrize(("kind", "name"), REGISTERED)
def test_every_parameter_of_everything_registered_is_explained(kind: str, name: str) -> None:
    cls = TABLES[kind][name].cls
    meanings = docstrings.meanings(cls, parameters(kind, name))
    silent = [parameter for parameter, meaning in meanings.items() if not meaning]
    assert not silent, (
        f"the docstring of {cls.__module__}.{cls.__name__} does not say what {', '.join(silent)} is: "
        "write `name : meaning.`"
    )
    assert not [m for m in meanings.values() if " : " in m], "an explanation begins where a sentence does"


@pytest.mark.parametrize(("kind", "name"), [one for one in REGISTERED if one[0] in ("algorithm", "problem")])
def test_every_method_and_problem_names_its_source(kind: str, name: str) -> None:
    module = importlib.import_module(TABLES[kind][name].cls.__module__)
    assert docstrings.source(module.__doc__), f"the docstring of {module.__name__} has no paragraph `Source: ...`"


def test_an_explanation_begins_with_a_paragraph_or_sentence_and_ends_with_the_next_or_its_paragraph() -> None:
    meanings = docstrings.explained(
        """Parameters of a method.

        m : clients that take part in a round, 1 .. P; None for all. Q1, Q2 : steps,
            at least 1 (see fig. 3). mode : ``pcc`` or :math:`x^2`. A second sentence of mode: nothing else.

        This concerns none of them. last : at least 0.
        """
    )
    assert meanings == {
        "m": "clients that take part in a round, 1 .. P; None for all",
        "Q1": "steps, at least 1 (see fig. 3)",
        "Q2": "steps, at least 1 (see fig. 3)",
        "mode": "`pcc` or x^2. A second sentence of mode: nothing else",
        "last": "at least 0",
    }
    assert docstrings.explained("One line. m : rank, at least 1.") == {"m": "rank, at least 1"}
    assert docstrings.explained("No parameters: none at all.") == {}
    assert docstrings.explained("") == {}


def test_a_parameter_is_explained_by_its_class_else_by_the_nearest_base_class() -> None:
    class Far:
        """m : far. n : also far. o : far."""

    class Near(Far):
        """n : near. o : near."""

    class Own(Near):
        """o : own."""

    assert docstrings.meanings(Own, ["o", "m", "n", "p"]) == {"o": "own", "m": "far", "n": "near", "p": ""}


def test_the_source_is_the_paragraph_that_says_so() -> None:
    doc = "Title. More.\n\nText.\n\nSource: fedmf (1);\n    ``docs/x.md``.\n\nThe rest."
    assert docstrings.source(doc) == "fedmf (1); `docs/x.md`"
    assert docstrings.opening(doc) == "Title. More"
    assert docstrings.source("No source.") == docstrings.source(None) == ""


# Which figures use a name ---------------------------------------------------------------------------------------------


def used(figure: Figure) -> set[tuple[str, str]]:
    """What a figure that was read in full uses."""
    names = set()
    for panel in figure.panels:
        names.add(("panel kind", panel.kind))
        names |= {("panel option", f"{panel.kind}.{k}") for k, v in panel.options.items() if v is not None}
        counts = panel.options.get("axis", "round") if "reach" in panel.options else None
        axis = {"table": counts, "scatter": None}.get(panel.kind, panel.x)
        names |= {("axis", axis)} if axis in axes.AXES else set()
        for curve in panel.curves:
            setting = curve.setting
            names |= {(what, getattr(setting, what)) for what in ("algorithm", "problem", "dataset")}
            names |= {("partition", setting.partition)} if setting.partition else set()
            names |= {("measures", f"{setting.problem}.{metric}") for metric in setting.metrics}
    return names


def test_the_quick_look_at_specs_sees_what_reading_them_in_full_does() -> None:
    quick = uses(ROOT / "experiments")
    for path in specs(ROOT / "experiments"):
        figure = f"{path.parent.name}/{path.stem}"
        seen = {use for use, figures in quick.items() if figure in figures}
        seen |= {("measures", name) for what, name in seen if what in ("draws", "records")}
        full = set().union(*(used(project_specs.figure(path, tier)) for tier in TIERS))
        assert {use for use in seen if use[0] not in TOLD_BY_TEXT} == full, figure


TOLD_BY_TEXT = ("draws", "records", "spec key", "claim word")


SPEC = """
paper: fedmf
figure: own
problem: clustering
datasets: {syn: {name: synthetic, N: 40}, synthetic: {name: tdt2}}
partitions: {even: {name: uniform, P: 4}}
dataset: syn
metrics: [nmi]
panels:
  a:
    partition: even
    curves:
      - {algorithm: [fedmgs, kmeans++], m: [1, 2]}
      - {algorithm: fedmavg, zip: {dataset: [mnist, {name: synthetic}]}, problem: {K: 3}}
    options: {zoom: 0.1, xlabel: null}
  b:
    like: a
    kind: bars
    y: ari
    x: m
    options: {zoom: null}
  c:
    kind: table
    curves: [{algorithm: sncp}]
    options: {metrics: [purity], reach: 0.5, axis: uplink_bits}
  d:
    kind: scatter
    curves: [{algorithm: tsne}]
    options: {score: ami}
claims:
  - {id: own.1, panel: a, check: "y(at=1, m=1, metric='nmi') <= 2"}
tiers:
  smoke: {dataset: tcga}
"""

SPEC_KEYS = """
paper figure problem datasets partitions dataset metrics panels claims tiers datasets.name partitions.name
panels.partition panels.curves panels.options panels.like panels.kind panels.y panels.x panels.curves.algorithm
panels.curves.zip panels.curves.problem claims.id claims.panel claims.check tiers.smoke
"""


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    folder = tmp_path / "experiments"
    (folder / "own").mkdir(parents=True)
    (folder / "own" / "figure.yaml").write_text(SPEC, encoding="utf-8")
    return folder


def test_uses_are_of_the_names_behind_a_spec_s_own(experiments: Path) -> None:
    figures = uses(experiments)
    assert set(map(tuple, figures.values())) == {("own/figure",)}
    by_kind: dict[str, set[str]] = {}
    for what, name in figures:
        by_kind.setdefault(what, set()).add(name)
    assert by_kind == {
        "algorithm": {"fedmgs", "kmeans++", "fedmavg", "sncp", "tsne"},
        "problem": {"clustering"},
        "dataset": {"synthetic", "mnist", "tcga"},
        "partition": {"uniform"},
        "panel kind": {"curves", "bars", "table", "scatter"},
        "panel option": {"curves.zoom", "table.metrics", "table.reach", "table.axis", "scatter.score"},
        "axis": {"round", "uplink_bits"},
        "draws": {f"clustering.{m}" for m in ("objective", "ari", "purity", "ami")},
        "records": {"clustering.nmi"},
        "spec key": set(SPEC_KEYS.split()),
        "claim word": {"y", "metric"},
    }


@pytest.mark.parametrize(
    "text",
    ["", "- a", "a: [", "panels: 3", "panels: {a: 3, b: {curves: 7, like: [1]}, c: {like: c}}", "tiers: {smoke: 2}",
     "panels: {a: {curves: [{algorithm: {b: c}, dataset: [[1]], zip: 3}], options: [1], x: [2], y: {z: 1}, kind: []}}",
     "{problem: {K: 3}, datasets: [a], panels: {a: {curves: [4, {dataset: {N: 3}}]}}}", "a: !!python/object:x.Y {}"],
)  # fmt: skip
def test_specs_that_cannot_be_read_use_what_can_be_seen_in_them(text: str, experiments: Path) -> None:
    (experiments / "own" / "broken.yaml").write_text(text, encoding="utf-8")
    whole = uses(experiments)
    assert whole["algorithm", "fedmgs"] == ["own/figure"]
    assert ("problem", "K") not in whole


# What is said of each -------------------------------------------------------------------------------------------------


def test_everything_has_a_page_that_fits() -> None:
    described = lookup.describe(lookup.names(), ROOT / "experiments")
    count = sum(map(len, TABLES.values())) + sum(len(p.metrics) for p in registry.problems().values())
    count += len(KINDS) + len(entries.options()) + len(axes.AXES) + len(keys.paths()) + len(claim_grammar.WORDS)
    count += len(lexicon().words) + len(lexicon().dimensions) + len(lexicon().quantities)
    count += len(entries.parameter_names()) + len(output_words.MEANINGS)
    count += len(({*registry.PAPERS} - {STUDIES}) & {*lookup.names()})  # papers that are other things too
    assert len(described) == count
    for entry in described:
        assert entry.summary, entry.name
        assert None not in entry.figures.values()
        for width in (60, 80, 100):
            page = command.page(entry, width)
            long = [line for line in map(click.unstyle, page) if len(line) > width and len(line.split()) > 2]
            assert not long, (entry.name, long)
    assert json.loads(json.dumps([entry.plain() for entry in described]))


def test_an_algorithm_shows_its_parameters_under_its_name_and_what_the_name_presets(
    experiments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(experiments.parent)
    text = told("fedcavg-literal")
    assert text.startswith(
        "algorithm fedcavg-literal\n  FedCAvg with d = L_W, the printed lambda_max(H H^T) in our scaling; unstable "
        "where clients differ\n\n  label        FedCAvg (d as printed)\n"
    )
    assert "  class        fedrepro.problems.clustering.methods.fedmavg.FedMAvg\n" in text
    assert "  other names  fedmavg, fedcavg\n" in text
    assert "  problem      clustering\n" in text
    assert "  papers       fedc: Federated Clustering via Matrix Factorization Models" in text
    assert "  rounds       yes\n  messages     counted, up and down\n" in text
    assert "  source       fedmf sections III and V-A; fedc section III; docs/derivations/local-loop.md (the\n" in text
    assert "\n    gamma1         1.02      safety factor of the H step's c_p; a number of at least 1\n" in text
    assert "\n    gamma2         1 *       factor of the W step's d; a number greater than 0\n" in text
    assert "\n    * set by the name fedcavg-literal (FedMAvg has gamma2 = 5)\n" in text
    assert "\n    None is written null in a spec.\n" in text
    assert text.endswith("\n  used by other names and derived methods\n    own/figure\n")
    assert told("fedmavg-sncp").endswith("\n  used by\n    no figure\n")
    assert told("fedmgs").endswith("\n  used by\n    own/figure\n")


def test_inherited_parameters_are_explained_where_they_are_inherited_from() -> None:
    text = " ".join(told("fedmgs-sncp").split())
    assert "Q2 100 W steps of the server per round; an integer of at least 1" in text
    assert "cap 1 * largest rho, relative to ||X||^2/N, at least rho0" in text


def test_methods_without_rounds_or_messages_say_so() -> None:
    text = told("kmeans++")
    assert "  rounds    none: it yields one state\n  messages  none\n" in text


def test_a_problem_shows_its_metrics_and_methods() -> None:
    text = told("completion")
    assert "\n    r      5      rank, 1 .. min(rows, items)\n" in text
    assert "\n    lam    1e-6   weight of the regulariser of U; a number of at least 0\n" in text
    assert "rmse             lower   test RMSE: root mean square error of the test ratings" in text
    assert "  data             ratings\n" in text
    assert "fedmc-admm-released" in text
    assert "  always recorded  objective, rmse\n" in text


def test_a_dataset_shows_its_shape_files_and_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDREPRO_DATA", str(tmp_path / "home"))
    text = told("mnist")
    assert "  shape     M = 784, N = 10000, K = 10\n" in text
    assert "  files     absent: import the IDX files" in text
    assert "  stand-in  Small handwritten digits that scikit-learn comes with, enlarged" in text
    adopt("mnist", [data_copies.mnist(tmp_path / "copy")])
    assert "  files     variant: 40 test images instead of 10,000" in told("mnist")
    text = told("synpuf", "gcca-toy")
    assert "  shape     J = ?, I = 3, N = ?\n  trials    each has its own data\n" in text
    assert text.count("  files ") == text.count("  stand-in ") == 1
    assert "\n    path         (required)  an existing file ending in" in told("file")
    assert "default: [da, de, el, es, fi, fr, it, nl, pt, sv]" in " ".join(told("europarl").split())


def test_a_partition_takes_per_trial_besides() -> None:
    assert "\n    P          100    clients, 1 .. N\n    per_trial  false  whether every trial" in told("uniform")


def test_a_metric_shows_who_draws_and_who_only_records_it(experiments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(experiments.parent)
    text = told("nmi")
    assert "  better    higher\n  problem   clustering\n  recorded  if a figure asks for it\n" in text
    assert text.endswith("\n  only recorded by\n    own/figure\n")
    assert "\n  drawn by\n    own/figure\n" in told("purity")
    assert "  recorded  always\n" in told("clustering.objective")


def test_panels_and_axes_are_explained(experiments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(experiments.parent)
    text = told("table", "zoom", "bits_per_variable", "uplink_bits")
    assert "\n    scale        1      the factor of our numbers: 100 for percent (a number)\n" in text
    assert "\n  an item of published\n    row     the row of its cell" in text
    assert "panel option zoom\n" in text
    assert "  panels   curves\n  default  None\n  takes    a share of the x axis between 0 and 1\n" in text
    assert "  columns     uplink_bits, downlink_bits\n  divided by  the panel's option `variables`\n" in text
    assert "  claims   may name it\n\n  used by\n    own/figure\n" in text


# Names with several meanings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("fedmgs", ["algorithm fedmgs"]),
        ("FedMGS", ["algorithm fedmgs", "algorithm fedcgds", "algorithm fedmgs-sncp"]),
        ("FedCGds", ["algorithm fedcgds", "algorithm fedcgds-sncp"]),
        ("KMEANS++", ["algorithm kmeans++"]),
        ("K-means++", ["algorithm kmeans++"]),
        ("shift", ["problem shift", "dataset shift", "parameter shift"]),
        ("Shift", ["problem shift"]),
        ("TwoDigits", ["partition two_digits"]),
        ("objective", [f"metric {problem}.objective" for problem in ("clustering", *COMPLETION)]),
        ("completion.objective", ["metric completion.objective"]),
        ("users", ["partition users", *(f"metric {problem}.users" for problem in COMPLETION), "parameter users"]),
        ("columns", ["panel option columns", "panel option columns", "spec key columns"]),
        ("table.columns", ["panel option columns"]),
        ("bars.lines", ["panel option lines"]),
        ("panels.options.zoom", ["panel option zoom"]),
        ("panels.options.lines", ["panel option lines"]),
        ("role", ["spec key panels.curves.role"]),
        ("panels.curves.role", ["spec key panels.curves.role"]),
        (
            "rounds",
            ["spec key rounds", "spec key panels.rounds", "spec key panels.curves.rounds", "quantity of claims rounds"],
        ),
        ("per_trial", ["spec key partitions.per_trial"]),
        ("tiers.quick", ["spec key tiers.quick"]),
        ("check", ["spec key claims.check"]),
        ("highest", ["claim function highest"]),
        ("claims.check.metric", ["claim keyword metric"]),
        ("parameter", ["panel option parameter", "axis parameter", "claim function parameter"]),
        ("bars", ["panel kind bars"]),
    ],
)
def test_a_name_is_everything_it_stands_for(name: str, found: list[str]) -> None:
    assert headings(name) == found


def test_several_names_are_described_in_their_order_and_nothing_twice() -> None:
    found = headings("seconds", "fedcgds", "FedCGds", "seconds")
    assert found == ["axis seconds", "algorithm fedcgds", "algorithm fedcgds-sncp"]


def test_unknown_names_are_answered_with_the_nearest_ones(fedrepro: Call) -> None:
    listed = (
        "(`fedrepro list` shows algorithms, problems, datasets, partitions and metrics; methods of your own are known "
        "only to the specs that import them)"
    )
    answer = fedrepro("describe", "fedmgs", "fedmgz")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr == (
        f"error: 'fedmgz' is not a registered name, did you mean 'fedmgs' or 'fedmavg'? {listed}\n"
    )
    answer = fedrepro("describe", "Mnits", "qqqq", "clustering.objectiv")
    assert answer.exit_code == 2
    assert answer.stderr.splitlines() == [
        "error: 'Mnits' is not a registered name, did you mean 'mnist'?",
        "'qqqq' is not a registered name",
        "'clustering.objectiv' is not a registered name, did you mean 'clustering.objective', "
        f"'clustering.objective_raw' or 'clustering.zeta'? {listed}",
    ]
    assert fedrepro("describe").exit_code == 2


def test_names_that_no_spec_uses_are_answered_with_the_command_that_explains_them(fedrepro: Call) -> None:
    for name, answer in {
        "gcca.3d.optimal": "is a claim: `fedrepro why gcca.3d.optimal` explains its verdict",
        "gcca/fig4": "is a figure: `fedrepro verdict gcca/fig4` prints its claims; "
        "`fedrepro show gcca/fig4` prints its numbers",
        "beyond": "is a set of figures: `fedrepro verdict beyond` prints its claims",
    }.items():
        found = fedrepro("describe", name)
        assert (found.exit_code, found.stderr) == (2, f"error: '{name}' {answer}\n")
    hint = "'qqqq' is not a registered name (`fedrepro list` shows "
    assert hint in fedrepro("describe", "gcca/fig4", "qqqq").stderr


def test_a_parameter_is_described_for_everything_that_has_it(fedrepro: Call) -> None:
    text = fedrepro("describe", "Q2").output
    assert text.startswith("parameter Q2\n  what it means, and its default\n\n  of\n    fedmavg and 5 more  ")
    assert "None  local W steps per round, at least 1;" in text
    assert "fedmgs and 4 more      100   W steps of the server per round" in text
    for name in ("fraction", "lam", "gcca.center", "problem.widths", "fedmgs.Q2"):
        assert f"parameter {name.rpartition('.')[2]}\n" in fedrepro("describe", name).output


def test_a_paper_is_described_by_its_discrepancies(fedrepro: Call) -> None:
    text = fedrepro("describe", "fedmf").output
    assert text.startswith("paper fedmf\n  Federated Matrix Factorization: ")
    assert "  its claims  fedrepro verdict fedmf\n" in text
    assert "\n    fedmf.16  Q2 and Qhat of Figs. 4 to 6: paper the same as in V-D, which has no value;" in text
    both = [line for line in fedrepro("describe", "perfedsi").output.splitlines() if line.startswith(("algo", "paper"))]
    assert both == ["algorithm perfedsi", "paper perfedsi"]


def test_words_of_the_output_are_described(fedrepro: Call) -> None:
    assert fedrepro("describe", "within noise", "seeds", "Margin").output.count("word of the output ") == 3
    for word in evidence.VERDICTS:
        assert word in output_words.MEANINGS


def test_a_discrepancy_is_described_with_its_other_values(fedrepro: Call) -> None:
    text = " ".join(told("gcca.5").split())
    for part in (
        "discrepancy gcca.5 the random starts of Fig. 3",
        "paper CuteMaxVar with minibatches; the two curves coincide",
        "our value is printed: the paper, or the other version of the same work, prints it",
        "other values full-gradient (released): cutemaxvar with b = None where start = randn-raw",
        "run them fedrepro settings run --only gcca.5",
        "what they change fedrepro settings show --only gcca.5",
        "concerns gcca/fig3",
    ):
        assert part in text
    assert "none can be run the printed forms cannot be computed" in " ".join(told("gcca.7").split())
    (facts,) = json.loads(told("gcca.5", "--json"))
    assert (facts["kind"], facts["figures"]) == ("discrepancy", {"concerns": ["gcca/fig3"]})
    unknown = "gcca" + ".99"
    answer = fedrepro("describe", unknown)
    assert answer.stderr == f"error: there is no discrepancy '{unknown}', did you mean 'gcca.9'?\n"
    assert "no such figure, paper or claim" in fedrepro("why", unknown).stderr
    found = fedrepro("why", "gcca.5")
    assert found.exit_code == 2
    assert (
        "gcca.5: is a discrepancy, not a figure, paper or claim (`fedrepro describe gcca.5` explains it)"
        in found.stderr
    )


def test_json_says_the_same(experiments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(experiments.parent)
    method, data, metric = json.loads(told("fedcavg-literal", "file", "purity", "--json"))
    assert (method["kind"], method["name"], method["rounds"]) == ("algorithm", "fedcavg-literal", True)
    by_name = {p["name"]: p for p in method["parameters"]}
    assert by_name["gamma2"] == {
        "name": "gamma2", "default": 1.0, "meaning": "factor of the W step's d; a number greater than 0",
        "preset": True, "otherwise": 5.0,
    }  # fmt: skip
    assert by_name["Q1"] == {
        "name": "Q1",
        "default": 10,
        "meaning": "H steps per client and round; an integer of at least 1",
    }
    assert data["parameters"][0]["required"] is True
    assert "default" not in data["parameters"][0]
    assert metric["figures"] == {"drawn_by": ["own/figure"], "only_recorded_by": []}
    (problem,) = json.loads(told("imc", "--json"))[:1]
    assert problem["metrics"][0] == dataclasses.asdict(registry.problems()["imc"].metrics["error"])


# The command line -----------------------------------------------------------------------------------------------------


def test_list_shows_problems_and_metrics(fedrepro: Call) -> None:
    problems = fedrepro("list", "problems").stdout.splitlines()
    assert problems[0] == "problems"
    known = sorted(registry.problems().items())
    assert [line.split()[:2] for line in problems[1:]] == [[name, entry.data_kind] for name, entry in known]
    assert fedrepro("list", "metrics").stdout.splitlines()[1].split()[:3] == ["objective", "clustering", "lower"]
    titles = [line for line in fedrepro("list").stdout.splitlines() if not line.startswith(" ")]
    assert titles == ["papers", "figures", "problems", "algorithms", "partitions", "datasets", "metrics"]


def test_names_are_completed() -> None:
    from click.shell_completion import ShellComplete

    shell = ShellComplete(main, {}, "fedrepro", "_FEDREPRO_COMPLETE")
    assert [c.value for c in shell.get_completions(["describe"], "fedmgs")] == [
        "fedmgs", "fedmgs-quantized", "fedmgs-sncp",
    ]  # fmt: skip
    assert [c.value for c in shell.get_completions(["describe", "fedmgs"], "imc.l")] == ["imc.loss", "imc.lam_min"]
    everything = [c.value for c in shell.get_completions(["describe"], "")]
    assert len(everything) == len(set(everything))
    assert {"clustering", "objective", "table", "zoom", "seconds"} <= set(everything)


def test_every_command_is_where_the_table_says() -> None:
    assert list(COMMANDS) == sorted(COMMANDS)
    context = main.make_context("fedrepro", ["list"])
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert isinstance(command, click.Command)
        assert command.name == name
        assert command.get_short_help_str(200) == COMMANDS[name][1]
    assert main.get_command(context, "nothing") is None


def test_help_lists_the_commands_and_imports_none() -> None:
    code = (
        "import sys; from fedrepro.cli.main import main; main(['--help'], standalone_mode=False); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    *listed, modules = done.stdout.splitlines()
    assert [line.split()[0] for line in listed[-len(COMMANDS) :]] == list(COMMANDS)
    assert "fedrepro.cli.verdict" not in modules
    assert "numpy" not in modules.split()


@pytest.mark.parametrize("words", [["--help"], ["list"], ["describe", "cutemaxvar-deep", "mnist", "table"]])
def test_looking_things_up_imports_no_heavy_library(words: list[str]) -> None:
    code = (
        "import sys\nfrom fedrepro.cli.main import main\n"
        f"main({words!r}, standalone_mode=False)\n"
        "print('heavy:', sorted({'matplotlib', 'numba', 'sklearn', 'jax', 'pandas', 'pooch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("heavy: []\n"), done.stdout[-300:]
