"""Kept results are never computed again, and never replaced by results that contain less."""

from __future__ import annotations

import dataclasses
import errno
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from fedrepro import registry
from fedrepro.errors import UserError
from fedrepro.report import gather_contents, next_steps
from fedrepro.results.read import read_sidecar, stems
from fedrepro.results.schema import VERSION, Sidecar
from fedrepro.runs.compute import execute
from fedrepro.runs.compute.record import Record
from fedrepro.runs.identity import code, plan
from fedrepro.runs.storage.store import Store
from fedrepro.runs.storage.validity import Validity, elsewhere, validity
from fedrepro.spec.read import load

from .conftest import ROOT

Call = Callable[..., Result]
ARRAYS = """
paper: beyond
figure: arrays
problem: {name: clustering}
trials: 2
rounds: 2
dataset: {name: synthetic, variant: clean, M: 12, N: 30, K: 3}
partition: {name: uniform, P: 3}
artifacts: [W, found, labels]
panels:
  a:
    x: seconds
    curves: [{algorithm: fedmgs, m: [2, 3]}]
"""


def files(tmp_path: Path, figure: str = "small", tier: str = "quick") -> dict[str, bytes]:
    """The CSVs of a figure by their suffixes."""
    folder = tmp_path / "results" / tier / "beyond"
    return {p.name.removeprefix(figure): p.read_bytes() for p in folder.glob(f"{figure}*.csv*")}


def forget(tmp_path: Path) -> None:
    """What a clone of the repository does not have."""
    for name in (".runs", ".scratch", ".locks"):
        if (tmp_path / "results" / name).exists():
            __import__("shutil").rmtree(tmp_path / "results" / name)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that are computed, in this process (one worker), by their series and trial."""
    runs: list[str] = []
    whole = execute.measured

    def measured(setting, trial, problem, *clock):
        runs.append(f"{setting.series} {trial}")
        return whole(setting, trial, problem, *clock)

    monkeypatch.setattr(execute, "measured", measured)
    return runs


def test_a_clone_starts_from_the_results_it_has(
    small: Path, tmp_path: Path, fedrepro: Call, computed: list[str]
) -> None:
    assert fedrepro("run", small, "-j", 1).exit_code == 0
    complete = files(tmp_path)
    forget(tmp_path)
    computed.clear()
    again = fedrepro("run", small, "-j", 1)
    assert "finished, nothing to do" in again.output
    assert fedrepro("plan", small).output.splitlines()[0].endswith("8 runs reused, 0 to do")
    longer = fedrepro("run", small, "-j", 1, "--set", "trials=3")
    assert "8 reused" in longer.output
    assert len(computed) == 4
    assert all(name.endswith(" 3") for name in computed)
    assert files(tmp_path)[".csv"].startswith(complete[".csv"].splitlines(keepends=True)[0])


def test_a_part_of_the_figure_leaves_the_whole_as_it_stands(
    small: Path, tmp_path: Path, fedrepro: Call, computed: list[str]
) -> None:
    fedrepro("run", small, "-j", 1)
    complete = files(tmp_path)
    for arguments in (["--only", "a"], ["--set", "trials=1"]):
        forget(tmp_path)
        computed.clear()
        assert fedrepro("run", small, "-j", 1, *arguments).exit_code == 0
        assert computed == []
        assert files(tmp_path)[".csv"] == complete[".csv"]


def test_compressed_results_are_extended_and_not_shadowed(
    small: Path, tmp_path: Path, fedrepro: Call, computed: list[str]
) -> None:
    fedrepro("run", small, "-j", 1)
    complete = files(tmp_path)[".csv"]
    path = tmp_path / "results" / "quick" / "beyond" / "small.csv"
    path.with_name("small.csv.gz").write_bytes(gzip.compress(complete))
    path.unlink()
    sidecar, packed = path.with_suffix(".json"), path.with_name("small.json.gz")
    packed.write_bytes(gzip.compress(sidecar.read_bytes()))
    sidecar.unlink()
    forget(tmp_path)
    computed.clear()
    for other in ("small.check.json", "small.answers.json.gz"):
        path.with_name(other).write_bytes(b"")
    assert stems(tmp_path / "results") == [path.with_suffix("")]
    for other in ("small.check.json", "small.answers.json.gz"):
        path.with_name(other).unlink()
    assert "finished, nothing to do" in fedrepro("run", small, "-j", 1).output
    fedrepro("run", small, "-j", 1, "--only", "a")
    assert computed == []
    assert {name: gzip.decompress(body) for name, body in files(tmp_path).items()} == {".csv.gz": complete}
    fedrepro("run", small, "-j", 1, "--set", "trials=3")
    assert list(files(tmp_path)) == [".csv"]
    assert sidecar.is_file()
    assert not packed.exists()
    assert len(computed) == 4


def test_missing_trials_only_are_computed_and_the_bytes_are_those_of_one_go(
    small: Path, tmp_path: Path, fedrepro: Call, computed: list[str]
) -> None:
    fedrepro("run", small, "-j", 1)
    complete = files(tmp_path)
    forget(tmp_path)
    for path in (tmp_path / "results" / "quick" / "beyond").iterdir():
        path.unlink()
    fedrepro("run", small, "-j", 1, "--set", "trials=1")
    forget(tmp_path)
    computed.clear()
    fedrepro("run", small, "-j", 1)
    assert len(computed) == 4
    assert files(tmp_path) == complete


def test_arrays_and_timings_come_back_too(tmp_path: Path, fedrepro: Call, computed: list[str]) -> None:
    spec = tmp_path / "arrays.yaml"
    spec.write_text(ARRAYS)
    assert fedrepro("run", spec, "-j", 1).exit_code == 0
    complete = files(tmp_path, "arrays")
    assert set(complete) == {".csv", ".points.csv"}
    before = read_sidecar(tmp_path / "results" / "quick" / "beyond" / "arrays")
    forget(tmp_path)
    computed.clear()
    fedrepro("run", spec, "-j", 1, "--only", "a", "--set", "title=other")
    assert computed == []  # an option that changes no run leaves those of the figure's results good
    spec.write_text(ARRAYS.replace("figure: arrays", "figure: arrays\ntitle: other"))
    forget(tmp_path)
    fedrepro("run", spec, "-j", 1)
    assert computed == []
    assert files(tmp_path, "arrays") == complete
    after = read_sidecar(tmp_path / "results" / "quick" / "beyond" / "arrays")
    assert before is not None
    assert after is not None
    assert after.timing == before.timing
    assert after.seconds_per_run == before.seconds_per_run
    assert after.setup_scalars == before.setup_scalars


def test_results_that_were_edited_are_not_taken_for_finished_runs(
    small: Path, tmp_path: Path, fedrepro: Call, computed: list[str]
) -> None:
    fedrepro("run", small, "-j", 1)
    complete = files(tmp_path)
    path = tmp_path / "results" / "quick" / "beyond" / "small.csv"
    head, *rows = complete[".csv"].splitlines(keepends=True)
    path.write_bytes(head + b"".join(reversed(rows)))
    forget(tmp_path)
    computed.clear()
    fedrepro("run", small, "-j", 1)
    assert len(computed) == 8
    assert files(tmp_path) == complete


def test_less_of_other_code_goes_beside_until_it_holds_as_much(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    fedrepro("run", small, "-j", 1)
    complete = files(tmp_path)[".csv"]
    digest = code.digest
    monkeypatch.setattr(code, "digest", lambda objects: digest(objects)[::-1])  # the code has changed
    part = fedrepro("run", small, "-j", 1, "--set", "trials=1")
    assert files(tmp_path)[".csv"] == complete
    assert set(files(tmp_path)) == {".csv", ".incomplete.csv"}
    assert "small.incomplete.csv: they contain 4 runs; small.csv with its 8 runs is kept until these are" in part.output
    assert "8 to do" not in fedrepro("plan", small).output  # half of the new ones are there, beside
    whole = fedrepro("run", small, "-j", 1)
    assert "4 runs computed, 4 reused" in whole.output
    assert set(files(tmp_path)) == {".csv"}


def test_runs_that_the_results_contain_with_others_change_nothing(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1)
    complete = files(tmp_path)
    part = fedrepro("run", small, "-j", 1, "--trials", 1, "--curve", "fedcavg", "--plot")
    assert "results/quick/beyond/small.csv already contains these runs and others; it is unchanged" in part.output
    assert "so far" not in part.output
    assert "2 reused" in part.output
    assert (tmp_path / "plots/quick/beyond/small.png").exists()
    assert files(tmp_path) == complete


def test_a_stand_in_never_replaces_results_from_the_data(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    spec = tmp_path / "digits.yaml"
    spec.write_text(small.read_text().replace("figure: small", "figure: digits").replace(
        "syn: {name: synthetic, variant: clean, M: 12, N: 60, K: 3}", "syn: {name: mnist, n: 40}"
    ))  # fmt: skip
    assert fedrepro("run", spec, "-j", 1, "--stand-in").exit_code == 0
    base = tmp_path / "results" / "quick" / "beyond" / "digits"
    facts = json.loads(base.with_name("digits.json").read_text())
    real = {**facts, "stand_ins": [], "plan": "other", "runs": {"x": ["real"]}}
    base.with_name("digits.json").write_text(json.dumps(real))
    said = fedrepro("run", spec, "-j", 1, "--stand-in")
    assert "come from a stand-in for mnist, and the existing ones from the data" in said.output
    assert json.loads(base.with_name("digits.json").read_text()) == real
    assert base.with_name("digits.stand-in.json").exists()


@pytest.mark.parametrize("kind", ["too many open files", "permissions", "a folder"])
def test_a_record_that_cannot_be_read_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    store = Store(tmp_path)
    record = Record({"status": "ok"}, np.arange(2), np.zeros((2, 4), dtype=np.int64), {"f": np.ones(2)}, np.zeros(2))
    store.write("abcd", record)
    path = store.path("abcd")
    good = path.read_bytes()
    if kind == "a folder":
        path.rename(tmp_path / "kept")
        path.mkdir()
    else:
        number = errno.EMFILE if kind == "too many open files" else errno.EACCES

        def refuse(self: Path) -> bytes:
            raise OSError(number, __import__("os").strerror(number))

        monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(UserError, match=r"abcd.npz: cannot be read \(.*\); the run in it is kept"):
        store.read("abcd")
    monkeypatch.undo()
    assert (tmp_path / "kept" if kind == "a folder" else path).read_bytes() == good


@pytest.mark.parametrize("content", [b"", b"not a record", b"PK\x03\x04 half an archive"])
def test_a_damaged_record_is_set_aside_and_not_deleted(tmp_path: Path, content: bytes) -> None:
    store = Store(tmp_path)
    store.path("abcd").parent.mkdir()
    store.path("abcd").write_bytes(content)
    assert store.read("abcd") is None
    assert not store.has("abcd")
    assert store.path("abcd").with_name("abcd.npz.damaged").read_bytes() == content


def test_a_sidecar_is_the_same_after_reading_and_says_what_it_cannot_be(tmp_path: Path) -> None:
    sidecar = Sidecar.parse(
        {
            "schema": VERSION, "figure": "beyond/x", "sets": ["a=1"], "runs": {"s": ["1", ""]}, "trials_done": 1,
            "failed": [{"series": "s", "trial": 2, "why": "no"}],
            "datasets": [{"dataset": "d", "state": "variant", "note": "n"}],
            "timing": {"s": {"1": {"rounds": [0, 1], "seconds": [0.0, 0.5]}}}, "made": {"commit": "c", "dirty": None},
        }
    )  # fmt: skip
    assert Sidecar.parse(json.loads(sidecar.text())) == sidecar
    assert [str(note) for note in sidecar.failed] == ["s, trial 2 (no)"]
    assert [v.dataset for v in sidecar.variants] == ["d"]
    assert not sidecar.only(["e"]).variants
    old = {
        "stand_ins": ["d"], "variants": [{"dataset": "d", "note": "n"}], "provenance": {"commit": "c", "dirty": True},
        "timing": {"s": {"1": {"round": [0], "seconds": [0.0]}}},
    }  # fmt: skip
    first = Sidecar.parse(old)
    assert (first.made.commit, first.made.dirty, first.timing["s"][1].rounds) == ("c", True, (0,))
    assert [v.note for v in first.variants] == ["n"]
    for bad, said in (
        ([], "a sidecar is a mapping, not list"),
        ({"schema": 99}, "version 99 of the sidecar is unknown"),
        ({"failed": [3]}, "the sidecar has an invalid value"),
    ):
        with pytest.raises(ValueError, match=said):
            Sidecar.parse(bad)  # type: ignore[arg-type]
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(UserError, match=r"x.json: cannot be read \(a sidecar is a mapping, not list\); restore it"):
        read_sidecar(tmp_path / "x")


def test_the_size_of_what_was_loaded_is_kept_and_comes_back(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    def sizes() -> Any:
        return json.loads((tmp_path / "results" / "quick" / "beyond" / "small.json").read_text())["sizes"]

    fedrepro("run", small, "-j", 1)
    assert sizes() == {"syn": {"M": 12, "N": 60, "K": 3}}
    forget(tmp_path)
    fedrepro("run", small, "-j", 1, "--set", "trials=3")
    assert sizes() == {"syn": {"M": 12, "N": 60, "K": 3}}


def test_a_verdict_says_where_the_data_are_of_another_size(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    small.write_text(small.read_text().replace("K: 3}", "K: 3, published: {N: 66, M: 12}}"))
    fedrepro("run", small, "-j", 1, "--tier", "paper")
    said = fedrepro("verdict", small, "--tier", "paper").output
    assert "on syn with N = 60 (the paper's: 66): margin" in said
    assert "(variant)" in said.splitlines()[-2]  # the last line is about locks


@pytest.mark.parametrize("recorded", [{"schema": 1}, {"runs": {}}, {"datasets": []}, {"figure": "beyond/other"}])
def test_of_numbers_of_unknown_origin_the_report_names_the_command_that_ends_the_doubt(
    small: Path, tmp_path: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch, recorded: dict[str, Any]
) -> None:
    """``run`` alone takes the results for finished; the step in the report computes all of them."""
    spec = tmp_path / "experiments" / "beyond" / "small.yaml"
    spec.parent.mkdir(parents=True)
    small.rename(spec)
    monkeypatch.chdir(tmp_path)
    fedrepro("run", spec, "-j", 1, "--tier", "paper")
    sidecar = tmp_path / "results" / "paper" / "beyond" / "small.json"
    sidecar.write_text(json.dumps(json.loads(sidecar.read_text()) | recorded))
    assert "finished, nothing to do" in fedrepro("run", spec, "-j", 1, "--tier", "paper").output
    section = gather_contents.section(spec, "paper", tmp_path / "results")
    (row,) = section.claims
    assert row.level == "unknown"
    took = next_steps.seconds(section, tmp_path / "results")
    assert took > 0
    (step,) = next_steps.steps(section, row, took)
    assert (step.words, step.seconds) == ("To compute results with a record of how:", took)
    program, *words = step.command.split()
    assert program == "fedrepro"
    assert "12 runs computed, 0 reused" in fedrepro(*words, "-j", 1).output
    assert {row.level for row in gather_contents.section(spec, "paper", tmp_path / "results").claims} == {"paper"}


@pytest.mark.parametrize("packed", [".xz", ".gz"])
def test_compressed_arrays_are_read_drawn_and_left_as_they_stand(
    tmp_path: Path, fedrepro: Call, computed: list[str], packed: str
) -> None:
    import lzma

    spec = tmp_path / "arrays.yaml"
    spec.write_text(ARRAYS)
    fedrepro("run", spec, "-j", 1)
    complete = files(tmp_path, "arrays")
    folder = tmp_path / "results" / "quick" / "beyond"
    pack = {".xz": lzma.compress, ".gz": gzip.compress}[packed]
    for name, body in complete.items():
        (folder / f"arrays{name}{packed}").write_bytes(pack(body))
        (folder / f"arrays{name}").unlink()
    before = files(tmp_path, "arrays")
    assert set(before) == {f".csv{packed}", f".points.csv{packed}"}
    forget(tmp_path)
    computed.clear()
    assert fedrepro("run", spec, "-j", 1).exit_code == 0
    assert computed == []
    assert fedrepro("plot", spec).exit_code == 0
    fedrepro("run", spec, "-j", 1, "--fresh")
    assert len(computed) == 4
    assert files(tmp_path, "arrays") == before  # the same content: what is compressed stays so


def test_fewer_trials_by_an_option_are_partial_and_nothing_else(small: Path, tmp_path: Path, fedrepro: Call) -> None:
    fedrepro("run", small, "-j", 1, "--tier", "paper", "--set", "trials=2")
    said = fedrepro("verdict", small, "--tier", "paper").output
    assert "(partial)" in said
    assert "changed" not in said


def test_runs_that_another_tier_holds_are_not_computed_again(
    small: Path, tmp_path: Path, fedrepro: Call, computed: list[str]
) -> None:
    fedrepro("run", small, "-j", 1, "--tier", "paper")
    forget(tmp_path)
    computed.clear()
    assert "8 reused" in fedrepro("run", small, "-j", 1, "--tier", "quick").output
    assert computed == []
    assert fedrepro("plan", small, "--tier", "quick").output.splitlines()[0].endswith("8 runs reused, 0 to do")
    forget(tmp_path)
    fedrepro("run", small, "-j", 1, "--tier", "smoke")
    assert len(computed) == 8  # of other lengths


SAID = "quick:  # as in the paper tier, whose kept runs are taken"
TAKING = [path for path in sorted((ROOT / "experiments").glob("*/*.yaml")) if SAID in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", TAKING, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_quick_tier_of_the_paper_tiers_runs_is_that(path: Path) -> None:
    quick, paper = (
        {run.id for runs in plan.make([load(path, tier)], True).by_figure[0].values() for run in runs}
        for tier in ("quick", "paper")
    )
    assert quick < paper


def test_a_figure_of_one_paper_takes_the_runs_of_another() -> None:
    # fedc's figure 1 on data and clients of fedmf's figures 1 and 2: what they share is 14 of its 18 curves, and the
    # 28 further trials of 4 of these curves that fedc.1c.q2 asks for
    runs_of_one, *others = (
        {
            run.id
            for runs in plan.make([load(ROOT / f"experiments/{name}.yaml", "paper")], True).by_figure[0].values()
            for run in runs
        }
        for name in ("fedc/fig1", "fedmf/fig1", "fedmf/fig2")
    )
    assert len(runs_of_one) == 180 + 4 * 28
    assert len(runs_of_one & set.union(*others)) == 140 + 4 * 28


@pytest.mark.parametrize("name", ["fedc/fig6", "fedmf/table1", "beyond/fedmc_sensitivity"])
def test_absent_data_do_not_hide_whether_the_code_is_that_of_kept_results(name: str) -> None:
    """Identities follow from the data that the sidecar records and from the code; tests have no data."""
    figure, base = load(ROOT / "experiments" / f"{name}.yaml", "paper"), ROOT / "results" / "paper" / name
    sidecar = read_sidecar(base)
    assert sidecar is not None
    assert validity(figure, sidecar) == Validity()
    others = {series: tuple(run and f"0{run[1:]}" for run in runs) for series, runs in sidecar.runs.items()}
    edited = dataclasses.replace(sidecar, plan="other", runs=others)
    assert validity(figure, edited) == Validity(("the code that computes it changed",))


def test_other_libraries_are_not_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Identities contain the versions of libraries: with those that the sidecar records, the code is the same."""
    name = "gcca/fig5"
    figure, base = load(ROOT / "experiments" / f"{name}.yaml", "paper"), ROOT / "results" / "paper" / name
    sidecar = read_sidecar(base)
    assert sidecar is not None
    kept = sidecar.made.libraries["numpy"]
    installed = code.installed
    monkeypatch.setattr(code, "installed", lambda library: "9.9" if library == "numpy" else installed(library))
    other = Validity(undecidable=(f"computed with other libraries: numpy {kept} (here 9.9)",))
    assert validity(figure, sidecar) == other
    assert elsewhere(figure, sidecar) == other.undecidable[0]
    runs = {series: tuple(run and f"0{run[1:]}" for run in runs) for series, runs in sidecar.runs.items()}
    edited = dataclasses.replace(sidecar, plan="other", runs=runs)
    assert validity(figure, edited) == Validity(("the code that computes it changed",))
    assert elsewhere(figure, edited) == ""


def test_plan_says_that_results_of_other_libraries_are_not_reused(
    monkeypatch: pytest.MonkeyPatch, fedrepro: Callable[..., Result]
) -> None:
    words = ("plan", "gcca/fig5", "--tier", "paper", "--results", ROOT / "results")
    assert "not reused" not in fedrepro(*words).output
    installed = code.installed
    monkeypatch.setattr(code, "installed", lambda library: "9.9" if library == "numpy" else installed(library))
    assert "\n  stored results are not reused here: computed with other libraries: numpy " in fedrepro(*words).output


def test_an_accelerator_is_one_of_the_libraries() -> None:
    networks = [registry.methods()["sr-ph"].cls]
    here = code.libraries(networks)
    there = {**here, "jax-cuda13-plugin": "0.11.2", "jax": "0.11.2", "XLA_FLAGS": "--xla_gpu_deterministic_ops=true"}
    assert code.libraries(networks, there) == there
    assert code.libraries(networks, {"numpy": "1.0"}) == {**here, "numpy": "1.0"}
    assert code.libraries([registry.methods()["fedmgs"].cls], there).keys() == {"numpy"}
