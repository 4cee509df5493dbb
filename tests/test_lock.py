"""Locks of claims: what they record, when they are refused, and what verdicts say of claims changed after them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from fedrepro.claims import locked_claims, written_before
from fedrepro.claims.precedence import AFTER, CLASSES, FAMILIES, LOCKED, Precedence, counted
from fedrepro.lexicon import vocabulary
from fedrepro.results import consistency
from fedrepro.results.by_run import Runs
from fedrepro.results.read import read_sidecar, results_file, with_results
from fedrepro.results.schema import Content, Sidecar
from fedrepro.spec import find, keys, lock_file
from fedrepro.spec.read import load
from fedrepro.spec.tiers import TIERS
from fedrepro.spec.words import words_of

from .conftest import ROOT, SMALL

Call = Callable[..., Result]

SPEC = SMALL.replace(
    "claims:\n",
    """\
names:
  many: {algorithm: fedcgds, m: 6}
  few: {algorithm: fedcgds, m: 2}
claims:
  - id: small.2
    says: "more clients are faster"
    where: "nowhere"
    panel: a
    check: faster(many, than=few)
""",
)
OTHER = "other.yaml"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose folder is the current one, and its spec with a claim in words and a literal one."""
    spec = tmp_path / "experiments" / "beyond" / "small.yaml"
    spec.parent.mkdir(parents=True)
    spec.write_text(SPEC, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return spec


@pytest.fixture
def lock(fedrepro: Call, tmp_path: Path) -> Call:
    """The command ``lock`` on the test's results."""
    return lambda *words: fedrepro("lock", *words, "--results", tmp_path / "results")


@pytest.fixture
def locked(project: Path, lock: Call, fedrepro: Call) -> Path:
    """The spec, locked and then run at the smoke tier."""
    assert lock("beyond/small").exit_code == 0
    assert fedrepro("run", project, "--tier", "smoke", "-j", 1).exit_code == 0
    return project


@pytest.fixture
def states(fedrepro: Call) -> Callable[..., dict[str, str]]:
    """What ``verdict`` says about each claim at the smoke tier."""

    def ask(*options: str) -> dict[str, str]:
        rows = json.loads(fedrepro("verdict", "beyond/small", "--tier", "smoke", "--json", *options).output)
        return {row["id"]: row["precedence"]["in_words"] for row in rows}

    return ask


def today(lock_of: Path) -> str:
    read = locked_claims.read(lock_of)
    assert read is not None
    return read.written[:10]


def edit(spec: Path, *pairs: tuple[str, str]) -> None:
    text = spec.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    spec.write_text(text, encoding="utf-8")


# -- what is locked ----------------------------------------------------------------------------------------------------


def test_a_lock_has_the_claims_the_lexicon_the_data_the_trials_and_the_settings(project: Path, lock: Call) -> None:
    answer = lock("beyond/small")
    path = Path("experiments/beyond/small.lock.json")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert answer.output == f"beyond/small: 2 claims locked, in {path}\n  sha256 {digest}\n"
    facts = json.loads(path.read_text(encoding="utf-8"))
    assert (facts["figure"], facts["existing"], facts["lock"]) == ("beyond/small", [], 1)
    assert facts["trials"] == {"smoke": 2, "quick": 2, "paper": 3}
    (data,) = facts["data"]
    assert (data["dataset"], data["state"], data["parameters"]["N"]) == ("synthetic", "none needed", 60)
    claim = facts["claims"]["small.2"]
    assert claim["texts"] == {"says": "more clients are faster", "panel": "a", "check": "faster(many, than=few)"}
    assert set(claim["names"]) == {"many", "few"}
    assert claim["words"] == ["early stage", "faster", "level", "measure of speed"]
    assert set(facts["lexicon"]) == set(claim["words"])
    assert facts["lexicon"]["level"]["values"][0] == 0.005
    assert (claim["panels"], claim["datasets"]) == (["a"], ["synthetic"])
    assert set(claim["settings"]) == set(TIERS)
    assert claim["settings"]["quick"] == claim["settings"]["paper"] != claim["settings"]["smoke"], "rounds: 2"
    assert facts["claims"]["small.1"]["words"] == []


def test_a_lock_is_read_as_it_was_written_and_another_file_is_refused(project: Path, lock: Call) -> None:
    lock("beyond/small")
    path = lock_file.path_of(project)
    read = locked_claims.read(project)
    assert read is not None
    assert read.text() == path.read_text(encoding="utf-8")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert lock_file.digest(project) == hashlib.sha256(read.text().encode()).hexdigest(), "line ends do not count"
    for text in ("", "[]", "{}", '{"lock": 2}', '{"lock": 1, "claims": 3}'):
        path.write_text(text)
        with pytest.raises(locked_claims.UserError, match=r"small.lock.json: is not a lock of `fedrepro lock` \("):
            locked_claims.read(project)
    path.unlink()
    assert (locked_claims.read(project), lock_file.digest(project)) == (None, "")


@pytest.mark.parametrize(
    "spec", find.specs(ROOT / "experiments")[::6], ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_every_claim_of_the_papers_can_be_locked(spec: Path) -> None:
    figures = {tier: load(spec, tier) for tier in TIERS}
    claims = locked_claims.lock_claims(figures)
    assert set(claims) == {claim.id for claim in figures["paper"].claims}
    for claim in figures["paper"].claims:
        words = set(claims[claim.id].words)
        assert set(locked_claims.definitions(words)) == words
        checks = locked_claims._checks(claims[claim.id].texts)
        assert words & set(vocabulary.lexicon().words) == {word for check in checks for word in words_of(check)}
        assert claims[claim.id].datasets or claim.inapplicable


def test_every_key_of_a_claim_that_decides_something_is_locked() -> None:
    assert set(keys.CLAIM) - set(locked_claims.PARTS) == {"id", "where", "note", "literal"}


def test_the_hash_of_the_lexicon_depends_on_values_and_not_on_explanations(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = vocabulary.lexicon()
    word = whole.words["faster"]
    same = dataclasses.replace(
        whole, words={**whole.words, "faster": dataclasses.replace(word, means="other", also=("x",))}
    )
    level = dataclasses.replace(whole.dimensions["level"], values=(0.01, 0.005))
    other = dataclasses.replace(whole, dimensions={**whole.dimensions, "level": level})
    digests = []
    for each in (whole, same, other):
        monkeypatch.setattr(vocabulary, "lexicon", lambda each=each: each)
        digests.append(vocabulary.digest.__wrapped__())
    assert digests[0] == digests[1] != digests[2]


# -- when it is refused ------------------------------------------------------------------------------------------------


def test_a_spec_with_results_is_refused_or_locked_with_their_tiers(
    project: Path, lock: Call, fedrepro: Call, states: Callable[..., dict[str, str]]
) -> None:
    fedrepro("run", project, "--tier", "smoke", "-j", 1)
    refused = lock("beyond/small")
    assert refused.exit_code == 2
    assert "experiments/beyond/small.yaml: has results at the smoke tier (" in refused.output
    assert (
        "small.csv); only a lock before the first run proves that claims came first. --after-results locks it all the "
        "same, and the lock says so\n" in refused.output
    )
    assert not lock_file.path_of(project).exists()
    after = lock("beyond/small", "--after-results")
    assert "2 claims locked, after results at the smoke tier, in" in after.output
    (state,) = set(states().values())
    written = locked_claims.read(project)
    assert written is not None
    assert state == f"written or changed after: locked on {written.written[:10]}, after these results"
    fedrepro("run", project, "--tier", "quick", "-j", 1)
    (row, _) = json.loads(fedrepro("verdict", "beyond/small", "--tier", "quick", "--json").output)
    assert row["precedence"] == {
        "class": AFTER,
        "in_words": "written or changed after: locked when there were results at the smoke tier",
    }


def test_the_one_table_of_an_own_study_is_named_once(tmp_path: Path, lock: Call, fedrepro: Call) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(SPEC.replace("paper: beyond", "paper: mine").replace("figure: small", "figure: own"))
    fedrepro("run", own, "-j", 1)
    after = lock(own, "--after-results").output
    assert "2 claims locked, after results at the quick tier, in" in after


def test_a_lock_is_replaced_before_results_and_never_after(project: Path, lock: Call, fedrepro: Call) -> None:
    lock("beyond/small")
    first = lock_file.digest(project)
    edit(project, ("more clients are faster", "many clients are faster"))
    assert lock("beyond/small").exit_code == 0
    assert lock_file.digest(project) != first
    fedrepro("run", project, "--tier", "smoke", "-j", 1)
    for options in ((), ("--after-results",)):
        refused = lock("beyond/small", *options)
        assert refused.exit_code == 2
        assert (
            "so its lock experiments/beyond/small.lock.json is not replaced; restore the spec with git, or leave the "
            "lock as it is: verdicts name what was changed" in refused.output
        )


def test_finished_runs_count_as_results_also_those_of_other_figures_and_options(
    project: Path, lock: Call, fedrepro: Call, tmp_path: Path
) -> None:
    copy = project.with_name(OTHER)
    copy.write_text(SPEC.replace("figure: small", "figure: other").replace("id: small", "id: other"))
    fedrepro("run", copy, "--tier", "smoke", "-j", 1)
    said = "beyond/small.yaml: has 8 finished runs at the smoke tier (in "
    assert said in lock("beyond/small").output, "the same runs"
    for folder in sorted((tmp_path / "results" / ".runs").rglob("*.npz")):
        folder.unlink()
    assert said in lock("beyond/small").output, "they are in the results of the other figure"
    results_file(tmp_path / "results" / "smoke" / "beyond" / "other").unlink()  # type: ignore[union-attr]
    fedrepro("run", project, "--tier", "quick", "-j", 1, "--set", "rounds=1")
    assert "small.yaml: has results at the quick tier (" in lock("beyond/small").output


def test_a_spec_without_claims_is_refused(small: Path, lock: Call) -> None:
    text = small.read_text()
    start, end = text.index("claims:"), text.index("tiers:")
    small.write_text(text[:start] + text[end:])
    refused = lock(small)
    assert refused.exit_code == 2
    assert "small.yaml: has no claims to lock; `fedrepro describe claims` explains how to write one" in refused.output


# -- what verdicts say -------------------------------------------------------------------------------------------------


def test_a_claim_locked_before_its_results_is_said_to_be(
    locked: Path, states: Callable[..., dict[str, str]], fedrepro: Call, tmp_path: Path
) -> None:
    said = f"locked before results, on {today(locked)}"
    assert states() == {"small.1": said, "small.2": said}
    output = fedrepro("verdict", "beyond/small", "--tier", "smoke").output
    assert output.count(f"\n{'':<20}{said}\n") == 2
    assert output.endswith("locked before results: 2 claims\n")
    sidecar = read_sidecar(tmp_path / "results" / "smoke" / "beyond" / "small")
    assert sidecar is not None
    assert (sidecar.lock, sidecar.lexicon) == (lock_file.digest(locked), vocabulary.digest())


EDITS = [
    ("small.2", [("more clients are faster", "more clients are slower")], "its sentence"),
    ("small.2", [("faster(many, than=few)", "faster(few, than=many)")], "its check"),
    (
        "small.2",
        [("{algorithm: fedcgds, m: 6}", "{algorithm: fedcavg, Q2: 5}")],
        "the names of its curves, the settings of its curves",
    ),
    ("small.1", [("panel: a\n    check: y(", "panel: b\n    check: y(")], "its panel"),
    ("small.1", [("    check: y(", "    reading: ends lower\n    check: y(")], "its reading"),
    ("small.1", [("Q2=1)", "Q2=1) + 0.1")], "its check"),
]


@pytest.mark.parametrize(("claim", "pairs", "what"), EDITS, ids=[f"{claim}: {what}" for claim, _, what in EDITS])
def test_a_verdict_names_what_of_its_claim_was_changed_after_the_lock(
    locked: Path, states: Callable[..., dict[str, str]], claim: str, pairs: list[tuple[str, str]], what: str
) -> None:
    edit(locked, *pairs)
    date = today(locked)
    said = states()
    assert said.pop(claim) == f"written or changed after the lock of {date}: {what}"
    assert list(said.values()) == [f"locked before results, on {date}"], "the other claim is as it was"


@pytest.mark.parametrize(
    ("pairs", "what"),
    [
        ([("N: 60", "N: 61")], "the settings of its curves"),
        ([("smoke: {rounds: 2}", "smoke: {rounds: 3}")], "the settings of its curves"),
        ([("Q1: 2, Q2: [1, 5]", "Q1: 3, Q2: [1, 5]"), ("Q1: [3, 2]", "Q1: [3, 3]")], "the settings of its curves"),
        ([("trials: 2", "trials: 4")], "the number of trials"),
    ],
)
def test_settings_and_trials_are_locked_too(
    locked: Path, states: Callable[..., dict[str, str]], pairs: list[tuple[str, str]], what: str
) -> None:
    edit(locked, *pairs)
    assert set(states().values()) == {f"written or changed after the lock of {today(locked)}: {what}"}


def test_what_decides_nothing_can_be_changed(locked: Path, states: Callable[..., dict[str, str]]) -> None:
    edit(
        locked,
        ('where: "nowhere"', 'where: "Sec. I"\n    note: "a note"'),
        ('title: "a small figure"', 'title: "another title"'),
        ("faster(many, than=few)", ">-\n      faster(many,\n      than=few)"),
        ("  few: {", "  # a comment\n  unused: {algorithm: fedcavg}\n  few: {"),
        ("paper: {trials: 3}", "paper: {trials: 30}"),
    )
    assert set(states().values()) == {f"locked before results, on {today(locked)}"}


def test_another_curve_in_a_panel_leaves_claims_locked_that_do_not_read_it(
    locked: Path, states: Callable[..., dict[str, str]]
) -> None:
    edit(locked, ("Q2: [1, 5]}", "Q2: [1, 5, 7]}"))
    assert set(states().values()) == {f"locked before results, on {today(locked)}"}


def test_a_claim_added_after_the_lock_is_named(locked: Path, states: Callable[..., dict[str, str]]) -> None:
    edit(
        locked,
        (
            "  - id: small.1\n",
            "  - {id: small.3, says: more, where: here, panel: a, check: 'better(many, than=few)'}\n  - id: small.1\n",
        ),
    )
    date = today(locked)
    assert states()["small.3"] == f"written or changed after: added after the lock of {date}"
    assert states()["small.1"] == f"locked before results, on {date}"


def test_a_changed_lexicon_is_named_with_the_word(
    locked: Path, states: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = vocabulary.lexicon()
    level = dataclasses.replace(whole.dimensions["level"], values=(0.01, 0.005))
    other = dataclasses.replace(whole, dimensions={**whole.dimensions, "level": level})
    for module in ("lexicon.vocabulary", "spec.readings", "spec.words", "spec.references", "claims.locked_claims"):
        monkeypatch.setattr(f"fedrepro.{module}.lexicon", lambda: other)
    date = today(locked)
    assert states() == {
        "small.1": f"locked before results, on {date}",
        "small.2": f"written or changed after the lock of {date}: the lexicon (level)",
    }


def test_a_lock_that_is_gone_exchanged_or_damaged_proves_nothing(
    locked: Path, states: Callable[..., dict[str, str]]
) -> None:
    path = lock_file.path_of(locked)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("more clients are faster", "more clients are slower"), encoding="utf-8")
    edit(locked, ("more clients are faster", "more clients are slower"))
    said = "written or changed after: its lock is not the one that was there when its first run began"
    assert set(states().values()) == {said}
    path.write_text("{")
    assert set(states().values()) == {"written or changed after: its lock cannot be read"}
    path.unlink()
    assert set(states().values()) == {"written or changed after: the lock that its results name is gone"}


def test_other_data_than_the_locked_ones_are_named(locked: Path, tmp_path: Path) -> None:
    ((figure, _, sidecar),) = with_results([locked], "smoke", tmp_path / "results")
    assert {state.kind for state in written_before.of_figure(figure, sidecar).values()} == {LOCKED}
    date = today(locked)
    for content, what in (
        (Content("synthetic", "stand-in", "stand-in"), "the data of synthetic (a stand-in)"),
        (Content("synthetic", "present", "abc"), "the data of synthetic"),
    ):
        other = dataclasses.replace(sidecar, datasets=(content,))
        (state,) = set(written_before.of_figure(figure, other).values())
        assert state == Precedence(AFTER, f"written or changed after the lock of {date}: {what}")


def test_data_that_were_absent_and_came_as_published_are_as_locked() -> None:
    from fedrepro import registry
    from fedrepro.data.copies import published_fingerprint

    published = published_fingerprint("mnist", registry.datasets()["mnist"].parameters())
    assert published
    then = locked_claims.LockedData("mnist", {}, "absent", "")
    claim = locked_claims.LockedClaim({}, {}, (), (), ("mnist",), {})
    lock_ = locked_claims.Lock("a/b", "", "", "", (), {}, {}, (then,), {"c": claim})
    for fingerprint, changed in ((published, []), ("other", ["the data of mnist"])):
        sidecar = Sidecar(datasets=(Content("mnist", "present", fingerprint),))
        assert list(locked_claims._changed_data(lock_, claim, sidecar)) == changed


# -- results without a lock, and older ones ----------------------------------------------------------------------------


def test_results_without_a_lock_say_so_and_older_ones_that_families_came_later(
    project: Path, fedrepro: Call, states: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    fedrepro("run", project, "--tier", "smoke", "-j", 1)
    assert set(states().values()) == {"not locked: it may have been written or changed after the results"}
    output = fedrepro("verdict", "beyond/small", "--tier", "smoke").output
    assert output.endswith("\nnot locked: 2 claims\n")
    path = tmp_path / "results" / "smoke" / "beyond" / "small.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps({**facts, "lexicon": "0" * 64}))
    assert set(states().values()) == {"not locked, and the lexicon was changed after the results"}
    older = {key: value for key, value in facts.items() if key not in ("lock", "lexicon")} | {"schema": 4}
    path.write_text(json.dumps(older))
    assert set(states().values()) == {"readings chosen after results"}
    (row, _) = json.loads(fedrepro("verdict", "beyond/small", "--tier", "smoke", "--json").output)
    assert row["precedence"]["class"] == FAMILIES
    assert row["level"] == "smoke", "the origin is as certain as before"
    path.unlink()
    assert set(states().values()) == {"not locked: these results have no sidecar"}


def test_results_keep_the_lock_of_their_first_run(
    project: Path, lock: Call, fedrepro: Call, states: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    base = tmp_path / "results" / "smoke" / "beyond" / "small"
    fedrepro("run", project, "--tier", "smoke", "-j", 1)
    lock("beyond/small", "--after-results")
    fedrepro("run", project, "--tier", "smoke", "-j", 1, "--set", "trials=3")
    fedrepro("run", project, "--tier", "smoke", "-j", 1, "--fresh")
    sidecar = read_sidecar(base)
    assert sidecar is not None
    assert sidecar.lock == "", "results that existed before the lock"
    (state,) = set(states().values())
    assert state.startswith("written or changed after: locked on ")
    lock_file.path_of(project).unlink()
    assert set(states().values()) == {"not locked: it may have been written or changed after the results"}


def test_more_trials_leave_a_claim_locked(locked: Path, fedrepro: Call, states: Callable[..., dict[str, str]]) -> None:
    fedrepro("run", locked, "--tier", "smoke", "-j", 1, "--set", "trials=3")
    assert set(states().values()) == {f"locked before results, on {today(locked)}"}


def test_a_lock_changes_no_byte_of_the_results(project: Path, lock: Call, fedrepro: Call, tmp_path: Path) -> None:
    fedrepro("run", project, "--tier", "smoke", "-j", 1, "--results", tmp_path / "before")
    lock("beyond/small")
    fedrepro("run", project, "--tier", "smoke", "-j", 1)
    one, two = (tmp_path / root / "smoke" / "beyond" / "small.csv" for root in ("before", "results"))
    assert one.read_bytes() == two.read_bytes()
    runs = [read_sidecar(path.with_suffix("")).runs for path in (one, two)]  # type: ignore[union-attr]
    assert runs[0] == runs[1]


def test_results_with_options_are_other_settings(
    locked: Path, fedrepro: Call, states: Callable[..., dict[str, str]]
) -> None:
    fedrepro("run", locked, "--tier", "smoke", "-j", 1, "--set", "rounds=1")
    said = states("--set", "rounds=1")
    assert set(said.values()) == {f"written or changed after the lock of {today(locked)}: the settings of its curves"}


def test_a_lock_without_a_lexicon_in_a_sidecar_is_doubted(locked: Path, tmp_path: Path) -> None:
    ((figure, table, sidecar),) = with_results([locked], "smoke", tmp_path / "results")
    settings = figure.settings()
    assert list(consistency.doubts(figure, sidecar, Runs(table), settings)) == []
    forged = dataclasses.replace(sidecar, lexicon="")
    said = "with a sidecar that names a lock, but no lexicon"
    assert list(consistency.doubts(figure, forged, Runs(table), settings)) == [said]


def test_kept_results_have_no_lock_and_are_older_than_the_lexicon() -> None:
    """Only perfedsi Fig. 2 was first computed at the published sizes when its claims and the lexicon were there."""
    younger = ROOT / "results" / "paper" / "perfedsi" / "fig2"
    tables = sorted((ROOT / "results" / "paper").glob("*/*.csv*"))
    for base in {path.with_name(path.name.partition(".")[0]) for path in tables}:
        sidecar = read_sidecar(base)
        assert sidecar is not None, base
        assert (sidecar.lock, bool(sidecar.lexicon)) == ("", base == younger), base


def test_the_report_says_it_on_the_pages_of_claims_and_figures(locked: Path, fedrepro: Call, tmp_path: Path) -> None:
    edit(locked, ("more clients are faster", "more clients are slower"))
    out = tmp_path / "pages"
    words = ("--tier", "smoke", "--jobs", 1, "--no-pictures", "--results", tmp_path / "results", "--out", out)
    assert fedrepro("report", "beyond/small", *words).exit_code == 0

    def page_of(name: str) -> str:
        (path,) = out.rglob(f"{name}.html")
        return path.read_text(encoding="utf-8")

    date = today(locked)
    assert f"Locked before results, on {date}." in page_of("small.1")
    changed = page_of("small.2")
    assert f"Written or changed after the lock of {date}: its sentence." in changed
    page = page_of("*small")
    assert "Locked before results: 1 claim; written or changed after: 1 claim." in page


@given(st.lists(st.sampled_from([None, *CLASSES])))
def test_counts_name_every_claim_once(kinds: list[str | None]) -> None:
    text = counted(None if kind is None else Precedence(kind, "") for kind in kinds)
    named = {part.split(": ")[0]: int(part.split(": ")[1].split()[0]) for part in text.split("; ") if part}
    assert named == {kind: kinds.count(kind) for kind in CLASSES if kind in kinds}
