"""Asking by name: commands take figures, papers and claims, use the best results there are, and name stale ones."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from click.testing import Result

from fedrepro import registry
from fedrepro.claims import origin
from fedrepro.errors import UserError
from fedrepro.plotting import draw_panel
from fedrepro.plotting.provenance import read as read_record
from fedrepro.results import load, staleness
from fedrepro.results.frame import StaleResults
from fedrepro.spec import bibliography, find
from fedrepro.spec.find import Selected

from .conftest import ROOT

Call = Callable[..., Result]

CHANGED = "the code that computes it changed"


@pytest.fixture
def project(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two figures of one paper; its folder is the current one."""
    folder = tmp_path / "experiments" / "beyond"
    folder.mkdir(parents=True)
    (folder / "small.yaml").write_text(small.read_text())
    other = small.read_text().replace("figure: small", "figure: other").replace("id: small.1", "id: other.1")
    (folder / "other.yaml").write_text(other.replace("Q2=5) < y(at='end', algorithm='fedcavg', Q2=1)", "Q2=5) < 0"))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def stale(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function that makes all results stale."""

    def edit() -> None:
        monkeypatch.setattr("fedrepro.runs.identity.identify.SCHEME", "other code")

    return edit


def names(selected: list[Selected]) -> list[tuple[str, list[str]]]:
    return [(item.path.stem, sorted(item.claims)) for item in selected]


def test_a_name_is_a_figure_a_paper_a_claim_or_a_file(project: Path, small: Path) -> None:
    assert names(find.select(["beyond/small"])) == [("small", [])]
    assert names(find.select(["experiments/beyond/small.yaml"])) == [("small", [])]
    assert names(find.select(["beyond"])) == names(find.select([])) == [("other", []), ("small", [])]
    assert names(find.select(["small.1", "other.1"])) == [("small", ["small.1"]), ("other", ["other.1"])]
    assert names(find.select(["small.1", "beyond/small"])) == [("small", [])], "the whole figure includes the claim"
    assert find.select([small])[0].path == small
    for name, near in (("beyon", "beyond"), ("beyond/smal", "beyond/small"), ("other.2", "other.1")):
        with pytest.raises(UserError, match=f"^{name}: no such figure, paper or claim, did you mean '{near}'"):
            find.select([name])


def test_a_command_for_one_figure_refuses_a_paper(project: Path, fedrepro: Call) -> None:
    refused = fedrepro("show", "beyond")
    assert refused.exit_code == 2
    assert "beyond: has 2 figures; name one of them, such as beyond/other" in refused.output


def test_the_ids_of_all_claims_are_found_without_parsing() -> None:
    from fedrepro.spec.nodes import read

    for path in find.specs(ROOT / "experiments"):
        claims = read(path).get("claims")
        assert find._claim_ids(path) == [claim["id"] for claim in (claims.plain() if claims else [])], path


def test_commands_take_papers_and_claims(project: Path, fedrepro: Call, tmp_path: Path) -> None:
    assert "2 specs valid" in fedrepro("validate", "beyond").output
    assert fedrepro("run", "beyond", "-j", 1, "--tier", "smoke").exit_code == 0
    planned = json.loads(fedrepro("plan", "other.1", "--tier", "smoke", "--json").output)
    assert [row["figure"] for row in planned["figures"]] == ["beyond/other"]
    results = ("--results", tmp_path / "results")
    assert (
        "beyond/other (smoke), beyond/small (smoke): no run"
        in fedrepro("failures", "beyond", "--tier", "smoke", *results).output
    )
    shown = fedrepro("show", "small.1").output
    assert "(a) left" in shown
    assert "(b)" not in shown, "the panel of the claim"


def test_a_claim_is_ours_if_its_place_or_its_figure_says_so() -> None:
    def row(figure: str, where: str) -> Any:
        return SimpleNamespace(figure=figure, claim=SimpleNamespace(where=where))

    theirs = [row("gcca/fig4", "Sec. V, Fig. 4"), row("fedmf/fig4", "Sec. V: ours is faster"), row("mine/x", "hours")]
    ours = [row("beyond/x", "fedmf Theorem 1"), row("gcca/fig4", "ours"), row("gcca/fig4", "(ours: Sec. V on MNIST)")]
    assert origin.apart([*ours, *theirs]) == (theirs, ours)


def test_verdict_prints_a_line_for_each_paper_and_filters_claims(project: Path, fedrepro: Call) -> None:
    fedrepro("run", "beyond", "-j", 1)
    summary = fedrepro("verdict").output
    (line,) = [line for line in summary.splitlines() if line.startswith("ours ")]
    assert line.split() == ["ours", "2", "1", "1"], "one fails, one is undecided"
    assert "\nours: claims that this project adds (`fedrepro verdict beyond`: those of its own figures)\n" in summary
    assert "more local steps help" not in summary
    assert "fedrepro verdict --only not-reproduced" in summary, "what to ask next"
    of_paper = fedrepro("verdict", "beyond").output
    assert of_paper == fedrepro("verdict", "--paper", "beyond").output
    assert of_paper.count("more local steps help") == 2
    for words in (
        ("--only", "fails"),
        ("other.1",),
        ("--paper", "beyond", "other.1"),
        ("--paper", "other.1", "beyond"),
    ):
        one = fedrepro("verdict", *words).output
        assert (one.count("more local steps help"), "other.1" in one) == (1, True), words
    assert "1 fails (quick); 1 claim" in fedrepro("verdict", "other.1").output
    assert [row["id"] for row in json.loads(fedrepro("verdict", "--json").output)] == ["other.1", "small.1"]


def test_the_option_paper_filters_what_is_named(project: Path, small: Path, fedrepro: Call) -> None:
    folder = project.with_name("second")
    folder.mkdir()
    (folder / "small.yaml").write_text(small.read_text().replace("paper: beyond", "paper: second"))
    fedrepro("run", "beyond", "second", "-j", 1)

    def figures(*words: object) -> list[str]:
        return [row["figure"] for row in json.loads(fedrepro("verdict", "--json", *words).output)]

    assert figures("--paper", "beyond", "beyond/small", "second") == ["beyond/small"]
    assert figures("--paper", "second", "beyond/small", "second") == ["second/small"]
    assert figures("--paper", "beyond", "--paper", "second", "beyond/small", "second/small") == [
        "beyond/small",
        "second/small",
    ]
    none = fedrepro("verdict", "--paper", "second", "beyond/small")
    assert (none.exit_code, none.stderr) == (2, "error: no selected claim is of second\n")
    assert "no such figure, paper or claim" in fedrepro("verdict", "--paper", "nowhere", "beyond/small").stderr


def test_a_spec_without_claims_is_told_so(small: Path, fedrepro: Call) -> None:
    text = small.read_text()
    small.write_text(text[: text.index("claims:")] + text[text.index("tiers:") :])
    fedrepro("run", small, "-j", 1)
    refused = fedrepro("verdict", small)
    assert refused.exit_code == 2
    assert f"{small}: has no claims to judge; `fedrepro show {small}` prints its numbers" in refused.output


def test_own_specs_in_the_current_folder_are_found_by_study_figure_and_claim(
    small: Path, fedrepro: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write_text(small.read_text().replace("paper: beyond", "paper: mine").replace("small.1", "my.claim"))
    monkeypatch.chdir(tmp_path)
    for name, claims in (("mine", set()), ("mine/small", set()), ("my.claim", {"my.claim"})):
        assert [(item.path.name, item.claims) for item in find.select([name])] == [("small.yaml", claims)]
    fedrepro("run", "small.yaml", "-j", 1)
    for command in ("verdict", "why"):
        assert "more local steps help" in fedrepro(command, "my.claim").output
    (tmp_path / "twin.yaml").write_text(small.read_text().replace("figure: small", "figure: twin"))
    with pytest.raises(UserError, match=r"and twin.yaml; use --spec small.yaml \(`why`\), or change `id:` in one"):
        find.select(["my.claim"])


def test_own_specs_are_found_three_folders_below_and_beyond_by_their_path(
    small: Path, fedrepro: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tmp_path / "study" / "of" / "mine" / "one.yaml"
    spec.parent.mkdir(parents=True)
    small.rename(spec)
    spec.write_text(spec.read_text().replace("paper: beyond", "paper: mine").replace("small.1", "my.claim"))
    monkeypatch.chdir(tmp_path)
    fedrepro("run", spec, "-j", 1)
    assert fedrepro("show", "mine/small").output == fedrepro("show", spec).output
    for name in ("mine/small", "my.claim"):
        assert "more local steps help" in fedrepro("verdict", name).output
    assert len(load("mine/small")) > 0
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "copy.yaml").write_text(spec.read_text())
    assert fedrepro("show", "mine/small").exit_code == 0
    (spec.parent / "deeper").mkdir()
    spec.rename(spec.parent / "deeper" / "one.yaml")
    lost = fedrepro("show", "mine/small")
    assert (lost.exit_code, lost.stderr) == (
        2,
        "error: mine/small: its results are in results/mine, but no spec in this folder or up to 3 folders below has "
        "this name; give the path of its spec instead\n",
    )


def test_near_misses_of_names_in_own_specs_are_suggested(
    small: Path, fedrepro: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write_text(small.read_text().replace("paper: beyond", "paper: mine").replace("small.1", "pull.close"))
    monkeypatch.chdir(tmp_path)
    for name, near in (("pull.clos", "pull.close"), ("mine/smal", "mine/small"), ("small", "mine/small")):
        missed = fedrepro("verdict", name)
        assert missed.exit_code == 2
        assert f"error: {name}: no such figure, paper or claim, did you mean '{near}'? (`fedrepro" in missed.stderr


def test_messages_about_own_studies_name_no_tier(
    small: Path, fedrepro: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write_text(small.read_text().replace("paper: beyond", "paper: mine"))
    monkeypatch.chdir(tmp_path)
    printed = [fedrepro(command, "small.yaml").output for command in ("plan", "run", "run", "verdict", "failures")]
    assert "mine/small: 4 curves x 2 trials;" in printed[0]
    assert "mine/small: complete\n" in printed[1]
    assert "mine/small: finished, nothing to do" in printed[2]
    assert printed[4] == "mine/small: no run failed or diverged\n"
    explained = fedrepro("why", "small.1").output
    assert not [text for text in (*printed, explained) if "quick" in text or "published sizes" in text]
    assert "mine/small (smoke): complete" in fedrepro("run", "small.yaml", "--tier", "smoke").output


def test_the_next_step_names_the_folder_of_the_results(
    small: Path, fedrepro: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.write_text(small.read_text().replace("paper: beyond", "paper: mine"))
    monkeypatch.chdir(tmp_path)
    fedrepro("run", "small.yaml", "--results", "R 2")
    small.write_text(small.read_text().replace("rounds: 5", "rounds: 6"))
    explained = fedrepro("why", "small.1", "--results", "R 2").output
    assert "fedrepro run mine/small --results 'R 2'" in explained


def test_messages_name_figures_as_commands_do(project: Path, fedrepro: Call) -> None:
    results = project.parents[1] / "results"
    run, kept = "`fedrepro run beyond/small` makes them", f" (results are kept in {ROOT / 'results'})"
    lacking = f"error: beyond/small: no results in {results}; {run}, `--results DIR` names another folder{kept}\n"
    for command in ("verdict", "plot", "show"):
        assert fedrepro(command, "experiments/beyond/small.yaml").output == lacking, command
    nothing = fedrepro("verdict", "beyond", "--results", "elsewhere").stderr
    assert nothing == (
        f"error: no results with claims in {results.with_name('elsewhere')}; `fedrepro run beyond` makes them, "
        f"`--results DIR` names another folder{kept}\n"
    )
    with pytest.raises(UserError, match=rf"no results in {results}; .* makes them, `results=DIR` names another folder"):
        load("beyond/small")
    fedrepro("run", "beyond/small", "-j", 1, "--tier", "smoke")
    only = fedrepro("verdict", "beyond/small")
    assert only.exit_code == 2
    assert "beyond/small: its only results are of the smoke tier; `fedrepro verdict beyond/small --tier" in only.output


def test_comparing_methods_leads_to_duel(fedrepro: Call) -> None:
    assert "`fedrepro duel fedmgs OTHER --data DATASET`" in fedrepro("compare", "fedmgs", "fedmavg").output
    assert "duel" not in fedrepro("compare", "nowhere.csv", "fedmavg").output


def test_plot_draws_the_largest_tier_with_results_unless_one_is_named(project: Path, fedrepro: Call) -> None:
    fedrepro("run", "beyond/small", "-j", 1, "--tier", "smoke")
    assert "plots/smoke/beyond/small.png" in fedrepro("plot", "beyond/small", "--format", "png").output
    fedrepro("run", "beyond/small", "-j", 1)
    assert "plots/quick/beyond/small.png" in fedrepro("plot", "--format", "png").output
    asked = fedrepro("plot", "beyond/small", "--tier", "smoke", "--format", "png").output
    assert "plots/smoke/beyond/small.png" in asked
    lacking = fedrepro("plot", "beyond/small", "--tier", "paper")
    assert (lacking.exit_code, "no results at the paper tier" in lacking.output) == (2, True)


def test_plot_takes_papers_and_claims(project: Path, fedrepro: Call) -> None:
    fedrepro("run", "beyond/small", "-j", 1)
    assert "beyond/small.png" in fedrepro("plot", "beyond", "--format", "png").output, "figures with results"
    for words in (("--claim", "small.1"), ("small.1", "--width", "3in")):
        drawn = fedrepro("plot", *words, "--format", "png")
        assert "quick/beyond/small.a.caption.txt" in drawn.output, drawn.output


def test_lists_of_figures_have_the_names_that_commands_take(project: Path, fedrepro: Call) -> None:
    lines = fedrepro("list", "figures").output.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["beyond/other", "beyond/small"]
    (first, _) = json.loads(fedrepro("list", "figures", "--json").output)
    assert first == {"name": "beyond/other", "title": "a small figure", "spec": "experiments/beyond/other.yaml"}


def test_own_specs_are_known_to_list_describe_and_affected(
    fedrepro: Call, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small.parent)
    text = small.read_text()
    small.write_text(text.replace("paper: beyond", "paper: mine"))
    small.with_name("damaged.yaml").write_text("paper: mine\nfigure: damaged\nrounds: [")
    small.with_name("copy.yaml").write_text(text)  # of a figure of the project
    assert fedrepro("list", "figures").output.splitlines()[-2:] == [
        "  mine/damaged                 (not a valid spec; `fedrepro validate` prints the errors)",
        "  mine/small                   a small figure",
    ]
    assert fedrepro("list", "claims").output.splitlines()[-1].split()[:2] == ["small.1", "mine/small"]
    for name, what in {"mine": "a set of figures", "mine/small": "a figure", "small.1": "a claim"}.items():
        assert f"error: '{name}' is {what}: `fedrepro " in fedrepro("describe", name).stderr
    *_, own, total = fedrepro("affected", "fedcavg").output.splitlines()
    assert own.split()[:5] == ["mine/small", "2", "of", "4", "curves"]
    assert " of 50 figures, " in total


def test_stale_results_are_named_everywhere(
    project: Path, fedrepro: Call, tmp_path: Path, stale: Callable[[], None]
) -> None:
    results = tmp_path / "results"
    fedrepro("run", "beyond/small", "-j", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load("beyond/small", results=results).attrs["stale"] == ()
    for command in ("verdict", "show"):
        assert "stale:" not in fedrepro(command, "beyond/small").output
    stale()
    named = f"stale: beyond/small (quick tier): {CHANGED}; `fedrepro run beyond/small --tier quick` computes"
    assert named in fedrepro("verdict", "beyond/small").output
    (facts,) = json.loads(fedrepro("verdict", "beyond/small", "--json").output)
    assert facts["stale"] == [CHANGED]
    (line,) = [line for line in fedrepro("verdict").output.splitlines() if line.startswith("ours ")]
    assert line.split() == ["ours", "1", "1", "1"], "one claim, which holds, of one stale figure"
    shown = fedrepro("show", "beyond/small").output
    assert "STALE · QUICK TIER" in shown
    assert f"stale: {CHANGED}" in shown
    numbers = fedrepro("show", "beyond/small", "--format", "csv")
    assert all(line.endswith(",stale") for line in numbers.stdout.splitlines()[1:])
    assert named in numbers.stderr
    with pytest.warns(StaleResults, match=f"beyond/small .quick tier.: {CHANGED}"):
        assert load("beyond/small", results=results).attrs["stale"] == (CHANGED,)
    fedrepro("plot", "beyond/small", "--format", "svg")
    picture = (tmp_path / "plots" / "quick" / "beyond" / "small.svg").read_text()
    assert all(text in picture for text in ("<!-- STALE -->", CHANGED))
    drawn = tmp_path / "plots" / "quick" / "beyond" / "small.svg"
    assert CHANGED in fedrepro("provenance", drawn, "--results", results).output
    (facts,) = json.loads(fedrepro("provenance", drawn, "--results", results, "--json").output)
    assert facts["stale"] == [CHANGED]
    panel = ("plot", "beyond/small", "--panel", "a", "--format", "svg")
    assert fedrepro(*panel).exit_code == 0
    assert "<!-- STALE -->" in (tmp_path / "plots" / "quick" / "beyond" / "small.a.svg").read_text()
    assert read_record(tmp_path / "plots" / "quick" / "beyond" / "small.svg")["figure"] == "beyond/small"


def test_a_panel_in_axes_of_your_own_says_in_its_caption_that_it_is_stale(
    project: Path, fedrepro: Call, tmp_path: Path, stale: Callable[[], None]
) -> None:
    import matplotlib.pyplot as plt

    fedrepro("run", "beyond/small", "-j", 1)
    stale()
    axes = plt.figure().add_subplot()
    with pytest.warns(StaleResults, match=r"^stale: beyond/small \(quick tier\): ") as warned:
        caption = draw_panel(axes, "beyond/small", "a", results=tmp_path / "results")
    assert warned[0].filename == __file__
    assert "(a) left. STALE; QUICK TIER. quick tier" in caption
    assert caption.endswith(f"stale: {CHANGED}.")
    plt.close("all")


def test_fail_on_stale_lists_them(project: Path, fedrepro: Call, tmp_path: Path, stale: Callable[[], None]) -> None:
    fedrepro("run", "beyond", "-j", 1)
    stale()
    words = ("--results", tmp_path / "results", "--out", tmp_path / "out", "--no-pictures", "--fail-on", "stale")
    failed = fedrepro("report", *words)
    assert failed.exit_code == 1
    assert failed.stderr.endswith(
        f"--fail-on: 2 stale\n  stale: beyond/other: {CHANGED}\n  stale: beyond/small: {CHANGED}\n"
    )
    page = (tmp_path / "out" / "report" / "claims" / "small.1.html").read_text(encoding="utf-8")
    assert f"Stale: {CHANGED}." in page


def test_several_stale_results_are_a_list() -> None:
    words = staleness.in_words({("fedc/fig5", "paper"): ["the spec changed"], ("fedc/fig6", "quick"): [CHANGED]})
    assert words.splitlines() == [
        "2 results are stale:",
        "  fedc/fig5 (paper tier): the spec changed",
        f"  fedc/fig6 (quick tier): {CHANGED}",
        "  `fedrepro run FIGURE --tier TIER` computes the runs again, `fedrepro check FIGURE --tier TIER --whole` "
        "confirms those that did not change",
    ]


# Citations, what a change affects, and options of one word -----------------------------------------------------------


def test_every_paper_has_a_bibtex_entry_with_its_title() -> None:
    entries = bibliography.entries()
    assert list(entries) == [*registry.PAPERS, bibliography.PROGRAM]
    for paper, title in registry.PAPERS.items():
        assert bibliography.fields(entries[paper])["title"] == title
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    for reference, paper in zip(citation["references"], registry.PAPERS, strict=True):
        fields = bibliography.fields(entries[paper])
        names = [f"{one['family-names']}, {one['given-names']}" for one in reference["authors"] if "name" not in one]
        assert fields["author"] == (" and ".join(names) or "{Anonymous}")
        assert (reference["title"], str(reference.get("year", "")), reference.get("url", "")) == (
            fields["title"],
            fields.get("year", ""),
            fields.get("url", ""),
        )
    assert bibliography.fields(entries[bibliography.PROGRAM])["version"] == citation["version"]


def test_cite_prints_the_entries_of_papers_and_figures(fedrepro: Call) -> None:
    assert fedrepro("cite").output.count("@") == 6
    assert fedrepro("cite", "gcca").output.startswith("@article{gcca,\n")
    of_figure = fedrepro("cite", "fedc/fig5", "fedc.5a").output
    assert of_figure.startswith("% fedc/fig5: Federated Clustering via Matrix Factorization Models")
    assert [line for line in of_figure.splitlines() if line.startswith("@")] == ["@misc{fedc,", "@software{fedrepro,"]
    assert fedrepro("cite", "beyond/theory_gcca").output.count("@") == 1, "only the program"
    assert "no such figure" in fedrepro("cite", "fedx").output


def test_cite_of_a_figure_of_ones_own_prints_the_program(small: Path, fedrepro: Call) -> None:
    cited = fedrepro("cite", small)
    assert (cited.exit_code, cited.output.count("@")) == (0, 1)
    assert cited.output.startswith("% beyond/small: its spec names no source\n\n@software{fedrepro,")


def test_affected_names_the_figures_of_methods_that_derive_from_one(
    fedrepro: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.chdir(tmp_path)
    lines = fedrepro("affected", "fedmgs").output.splitlines()
    assert "fedc/fig5                    10 of 12 curves  fedcgds" in lines
    assert not any(line.startswith("fedmc") for line in lines)
    by_file = fedrepro("affected", "fedrepro/problems/clustering/methods/fedmgs.py").output.splitlines()
    assert set(lines) <= set(by_file)
    (row,) = [row for row in json.loads(fedrepro("affected", "als", "--json").output) if row["results"]]
    assert (row["figure"], row["curves"], row["methods"]) == ("beyond/fedmc_sensitivity", 3, ["als"])


def test_affected_refuses_other_names(fedrepro: Call, small: Path) -> None:
    near = fedrepro("affected", "fedmg")
    assert (
        "fedmg: neither a Python file nor a method, problem, dataset or partition, did you mean 'fedmgs'?"
        in near.stderr
    )
    assert f"{small}: is neither a file of the package" in fedrepro("affected", small).stderr


def test_what_is_affected_is_what_gets_another_identity(fedrepro: Call, tmp_path: Path) -> None:
    """A constant in a kernel of matrix completion is part of every run of ``fedmc``, and of no other paper's."""
    rows = json.loads(fedrepro("affected", "fedrepro/problems/completion/kernels.py", "--json").output)
    assert {row["figure"].split("/")[0] for row in rows} - {"beyond"} == {"fedmc"}
    assert all(row["curves"] == row["of"] for row in rows if row["figure"].startswith("fedmc"))


def test_plan_fresh_counts_runs_that_are_finished(small: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1)
    to_do = [
        json.loads(fedrepro("plan", small, *more, "--json").output)["in_all"]["todo"] for more in ((), ("--fresh",))
    ]
    assert to_do == [0, 8]


def test_files_that_are_no_specs_are_named_as_such(small: Path, fedrepro: Call) -> None:
    assert "nothing.yaml: no such file" in fedrepro("run", "nothing.yaml").stderr
    assert "x/small.csv: contains results; name their spec or figure instead" in fedrepro("show", "x/small.csv").stderr


def test_trials_rounds_and_curves_are_options(small: Path, fedrepro: Call) -> None:
    refused = fedrepro("plan", small, "--curve", "fedcags")
    assert (
        "--curve 'fedcags': there is no such curve, did you mean 'fedcgds'? (methods: fedcavg, fedcgds;"
        in refused.stderr
    )
    planned = json.loads(fedrepro("plan", small, "--trials", 4, "--curve", "FedCAvg", "--json").output)
    assert (planned["figures"][0]["settings"], planned["in_all"]["runs"]) == (2, 8)
    planned = json.loads(fedrepro("plan", small, "--curve", "fedcgds m=2", "--curve", "Q2=5", "--json").output)
    assert planned["in_all"]["todo"] == 4
    legend = json.loads(fedrepro("plan", small, "--curve", "FedCGds, m = 2", "--json").output)
    assert legend["in_all"]["todo"] == 2
    small.write_text(small.read_text().replace("Q2: [1, 5]}", 'Q2: [1, 5], label: "Av, all"}'))
    legend = json.loads(fedrepro("plan", small, "--curve", "Av, all, Q2 = 5", "--json").output)
    assert legend["in_all"]["todo"] == 2
    ran = fedrepro("run", small, "--rounds", 1, "--trials", 1, "--curve", "Q2=5", "-j", 1)
    assert "\n1 run computed, 0 reused" in ran.output
    assert "set/rounds=1/quick/beyond/small" in ran.output


def test_show_reads_the_first_trials(small: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1)
    assert "1 of 2 trials" in fedrepro("show", small, "--trials", 1).output


def test_plan_without_a_name_plans_every_figure_and_says_how_long_each_takes(project: Path, fedrepro: Call) -> None:
    planned = fedrepro("plan", "--tier", "smoke").output
    assert "beyond/other (smoke): 4 curves x 2 trials; 0 runs reused, 8 to do (about " in planned
    assert "beyond/small (smoke)" in planned


def test_an_option_named_like_a_key_suggests_set(small: Path, fedrepro: Call) -> None:
    refused = fedrepro("verdict", small, "--trials", 5)
    assert refused.exit_code == 2
    assert "No such option: --trials; --set trials=VALUE overrides this key of a spec." in refused.stderr
    refused = fedrepro("--tier", "paper", "verdict")
    assert refused.exit_code == 2
    assert "No such option: --tier; options follow the command, as in `fedrepro verdict --json`." in refused.stderr
    assert "--set" not in fedrepro("verdict", small, "--tria", 5).stderr


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("clients", "--set P=N sets the number of clients, and --set m=N how many take part in a round."),
        ("seeds", "--trials N sets the number of trials, each with a seed of its own."),
        ("workers", "--jobs N sets the number of parallel workers."),
    ],
)
def test_an_option_in_other_words_suggests_ours(small: Path, fedrepro: Call, word: str, said: str) -> None:
    refused = fedrepro("run", small, f"--{word}", 5)
    assert refused.exit_code == 2
    assert f"No such option: --{word}; {said}" in refused.stderr


def test_every_other_word_is_no_option_and_no_parameter() -> None:
    from fedrepro import registry
    from fedrepro.cli.compute import run
    from fedrepro.cli.main import ALSO_CALLED

    names = {name for entry in registry.methods().values() for name in entry.parameters()}
    options = {option for parameter in run.params for option in parameter.opts}
    assert not set(ALSO_CALLED) & names
    assert {words[0].split()[0] for words in ALSO_CALLED.values()} <= options
    assert not {f"--{word}" for word in ALSO_CALLED} & options


def test_claims_about_a_method_or_a_dataset_are_those_that_read_its_curves(small: Path, fedrepro: Call) -> None:
    from fedrepro.spec.claims_about import only_about
    from fedrepro.spec.find import select

    chosen = select([small])
    for names in (["fedcavg"], ["synthetic"], ["fedcavg", "synthetic"]):
        assert [item.claims for item in only_about(chosen, names)] == [{"small.1"}]
    assert only_about(chosen, ["fedcgds"]) == only_about(chosen, ["mnist"]) == []
    assert fedrepro("run", small, "--tier", "smoke", "-j", 1).exit_code == 0
    told = fedrepro("verdict", small, "--tier", "smoke", "--about", "fedcavg").output
    assert " small.1 " in told
    none = fedrepro("verdict", small, "--tier", "smoke", "--about", "fedcgds")
    assert (none.exit_code, "no selected claim is about fedcgds" in none.stderr) == (2, True)
    unknown = fedrepro("verdict", small, "--about", "fedcavgs")
    assert unknown.exit_code == 2
    assert "fedcavgs: is neither a method nor a dataset, did you mean 'fedcavg'?" in unknown.stderr


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("verdict", "--only", "reproducd"), "did you mean 'reproduced'?"),
        (("show", "fedc/fig5", "--tier", "papr"), "did you mean 'paper'?"),
        (("list", "figurse"), "did you mean 'figures'?"),
        (("run", "fedc/fig5", "--trials", "x"), "'x' is not a valid whole number."),
        (("explain", "fedmgs"), "'explain' is not a command, did you mean 'describe'? (commands: "),
    ],
)
def test_a_word_that_is_none_of_several_gets_the_nearest(words: tuple[str, ...], near: str, fedrepro: Call) -> None:
    missed = fedrepro(*words)
    assert missed.exit_code == 2
    assert near in missed.stderr


def test_fewer_trials_than_the_results_have_are_read(small: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1)
    both, first = (fedrepro("show", small, "--format", "csv", *more).stdout for more in ((), ("--set", "trials=1")))
    assert both != first
    trials = [line.split(",")[first.splitlines()[0].split(",").index("trials")] for line in first.splitlines()[1:]]
    assert set(trials) == {"1"}
    assert "2 trials" in fedrepro("show", small).stdout
    assert "1 of 2 trials" in fedrepro("show", small, "--set", "trials=1").stdout


def test_claims_are_listed_with_their_figures_and_what_they_say(fedrepro: Call) -> None:
    title, *lines = fedrepro("list", "claims").stdout.splitlines()
    assert title == "claims"
    own = [claim for spec in find.of_own_studies() for claim in spec.claims]  # those of examples/
    assert {line.split()[0] for line in lines} == {*find.claim_ids(), *own}
    listed = json.loads(fedrepro("list", "claims", "--json").stdout)
    (optimal,) = (claim for claim in listed if claim["name"] == "gcca.3d.optimal")
    assert optimal["figure"] == "gcca/fig3"
    (figure,) = find.load_all(["gcca/fig3"], "paper")
    assert optimal["says"] in {claim.says for claim in figure.claims if claim.id == optimal["name"]}
    assert "gcca.3d.optimal" not in fedrepro("list").stdout


@pytest.mark.parametrize("name", ["methods", "algorithm", "algorithms"])
def test_tables_are_found_by_other_words(name: str, fedrepro: Call) -> None:
    listed = fedrepro("list", name)
    assert listed.exit_code == 0
    assert listed.stdout.startswith("algorithms\n")


def test_a_name_of_methods_includes_those_that_continue_it() -> None:
    from fedrepro.spec.claims_about import only_about
    from fedrepro.spec.find import select

    (found,) = only_about(select(["fedmf/table1"]), ["fedmgs", "tdt2"])
    assert "fedmf.t1.tdt2.worse" in found.claims  # its method is fedmgs-sncp
    assert not any(".mnist." in claim for claim in found.claims)


def test_a_method_where_a_figure_belongs_is_named_as_one(fedrepro: Call) -> None:
    refused = fedrepro("verdict", "fedmgs")
    assert refused.exit_code == 2
    assert "fedmgs: is a method, not a figure, paper or claim" in refused.stderr
    assert "`fedrepro verdict --about fedmgs` prints the claims about it" in refused.stderr
