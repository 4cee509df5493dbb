"""Methods of a user's own module, which a spec names with ``import``: in sweeps, claims, workers and identities."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from fedrepro import own_modules, own_rounds, registry
from fedrepro.errors import UserError
from fedrepro.results import load
from fedrepro.runs.compute.run import Run
from fedrepro.runs.identity import plan
from fedrepro.runs.storage.store import Store
from fedrepro.runs.workers import local
from fedrepro.spec.nodes import SpecErrors
from fedrepro.spec.read import load as load_spec

from .conftest import ROOT

Call = Callable[..., Result]

METHOD = """
from dataclasses import dataclass
from typing import Annotated

from fedrepro import FedMGS
from fedrepro.parameters import Whole

FACTOR = 2


@dataclass(frozen=True)
class TwiceAsMany(FedMGS):
    \"\"\"FedMGS with more gradient steps of the server.

    extra : the number of times.
    \"\"\"

    extra: Annotated[int, Whole(1)] = FACTOR

    def rounds(self, problem, rng, **given):
        yield from FedMGS(m=self.m, Q1=self.Q1, Q2=self.Q2 * self.extra).rounds(problem, rng, **given)
"""


@pytest.fixture
def own(small: Path) -> Iterator[Path]:
    """A spec with a method of a user's module beside it; other tests do not see the method."""
    small.with_name("my_method.py").write_text(METHOD)
    text = small.read_text().replace("trials: 2", "import: my_method.py\ntrials: 2", 1)
    text = text.replace(
        "{algorithm: fedcavg, Q1: 2, Q2: [1, 5]}", "{algorithm: twiceasmany, m: 6, Q1: 2, extra: [1, 3]}"
    )
    text = re.sub("check: .*", "check: y(at='end', algorithm='twiceasmany', extra=3) < 10", text)
    small.write_text(text.replace("paper: beyond", "paper: mine"))
    yield small
    for name in [name for name in registry.methods() if own_modules.of(name) is not None]:
        del registry.methods()[name]


def ids(spec: Path) -> set[str]:
    return set(plan.make([load_spec(spec, "quick")], False).runs)


def test_a_spec_runs_a_method_of_ones_own_file(own: Path, fedrepro: Call, tmp_path: Path) -> None:
    assert "3 tiers" not in fedrepro("validate", own).output
    ran = fedrepro("run", own, "-j", 2)
    assert "8 runs computed, 0 reused, 0 failed" in ran.output, ran.output
    assert "1 holds; 1 claim" in fedrepro("verdict", own).output
    frame = load(own, results=tmp_path / "results")
    assert set(frame["extra"].dropna()) == {1, 3}
    assert "nothing to do" in fedrepro("run", own, "-j", 2).output


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        ("int = 2", "2.5", "extra must be an integer, not 2.5"),
        ("int = 2", "many", "extra must be an integer, not 'many'"),
        ("int = 2", "true", "extra must be an integer, not True"),
        ("float = 0.5", "fast", "extra must be a number, not 'fast'"),
        ("bool = False", "3", "extra must be true or false, not 3"),
        ("int | None = None", "2.5", "extra must be an integer or null, not 2.5"),
    ],
)
@pytest.mark.parametrize("init", ["", "    def __post_init__(self):\n        pass\n\n"])
def test_a_plain_annotation_is_the_type_of_a_parameter(
    own: Path, fedrepro: Call, annotation: str, value: str, message: str, init: str
) -> None:
    text = METHOD.replace("Annotated[int, Whole(1)] = FACTOR", annotation).replace(
        "    def rounds", f"{init}    def rounds"
    )
    own.with_name("my_method.py").write_text(text)
    own.write_text(own.read_text().replace("extra: [1, 3]", f"extra: {value}"))
    refused = fedrepro("validate", own)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: 1 error:\n"), refused.stderr
    line = next(k for k, text in enumerate(own.read_text().splitlines(), 1) if "extra:" in text)
    assert re.search(rf"small.yaml:{line}:\d+: 'twiceasmany': {re.escape(message)}  \(in: ", refused.stderr)


def test_values_of_the_annotated_types_and_defaults_are_valid(own: Path, fedrepro: Call) -> None:
    text = METHOD.replace("Annotated[int, Whole(1)] = FACTOR", "int = 2\n    step: float = 0.5\n    size: int = None")
    own.with_name("my_method.py").write_text(text)
    own.write_text(own.read_text().replace("extra: [1, 3]", "extra: [1, 3], step: 2"))
    assert "1 spec valid" in fedrepro("validate", own).output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("my_method.py", "nope.py", "nope.py: cannot be read (No such file or directory)"),
        ("import: my_method.py", "import: 3", "import must be text, not the number 3"),
        ("name: clustering", "name: clusters", "'clusters' is not a problem, did you mean 'clustering'?"),
    ],
)
def test_unknown_methods_of_a_module_that_is_not_imported_are_no_further_errors(
    own: Path, fedrepro: Call, old: str, new: str, message: str
) -> None:
    own.write_text(own.read_text().replace(old, new))
    refused = fedrepro("validate", own)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: 1 error:\n"), refused.stderr
    assert message in refused.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failed_run_names_the_line_of_ones_own_file(own: Path, fedrepro: Call, jobs: int) -> None:
    module = own.with_name("my_method.py")
    module.write_text(METHOD.replace("FACTOR = 2", "FACTOR = 2\nNAMES = {}").replace("self.extra)", "NAMES['extra'])"))
    ran = fedrepro("run", own, "-j", jobs)
    line = next(k for k, text in enumerate(module.read_text().splitlines(), 1) if "NAMES['extra']" in text)
    assert f"trial 1: failed: KeyError: 'extra' ({module}:{line})\n" in ran.stderr, ran.output
    assert ran.exit_code == 1


def test_a_state_that_cannot_be_measured_is_that_of_ones_own_file(own: Path, fedrepro: Call) -> None:
    module = own.with_name("my_method.py")
    module.write_text(METHOD.replace("        yield from ", "        yield from ((s.W, s.H) for s in ") + ")\n")
    ran = fedrepro("run", own, "-j", 1)
    assert re.search(
        rf"trial 1: failed: AttributeError: 'tuple' object has no attribute '\w+' \(in measuring a state that {module} "
        r"yields; see docs/own-method.md, \"The state\"\)\n",
        ran.stderr,
    ), ran.output


def test_rounds_that_return_a_state_are_named(own: Path, fedrepro: Call) -> None:
    module = own.with_name("my_method.py")
    module.write_text(METHOD.replace(ROUNDS, "    def rounds(self, problem, rng, **given):\n        return 3\n"))
    ran = fedrepro("run", own, "-j", 1)
    why = "TypeError: 'int' object is not iterable"
    said = f"{why} (rounds in {module} returns this instead of yielding states; see docs/own-method.md)\n"
    assert f"trial 1: failed: {said}" in ran.stderr, ran.output


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_method_that_exits_fails_its_own_runs_only(own: Path, fedrepro: Call, jobs: int) -> None:
    ends = METHOD.replace(
        "        yield from", "        if self.extra == 3:\n            raise SystemExit(0)\n        yield from"
    )
    own.with_name("my_method.py").write_text(ends)
    ran = fedrepro("run", own, "-j", jobs)
    assert ran.exit_code == 1
    assert "runs computed, 0 reused, 2 failed" in ran.output
    why = "failed: SystemExit: it called sys.exit(0); let it raise an error instead"
    assert [line.partition(": ")[2] for line in ran.stderr.splitlines() if why in line] == [
        f"{why} ({own.with_name('my_method.py')}:22)"
    ] * 2


def test_a_method_that_ended_the_command_itself_gets_another_process(
    own: Path, fedrepro: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted, elsewhere = [], []

    def interrupted(*_: object) -> None:
        noted.append(len(list(tmp_path.rglob("*.failed.json"))))
        raise KeyboardInterrupt

    def workers(groups: list[list[Run]], *_: object) -> Iterator[tuple[str, str]]:
        elsewhere.extend(groups)
        yield from ()

    monkeypatch.setattr(local, "attempt", interrupted)
    monkeypatch.setattr(local, "answers", workers)
    assert fedrepro("run", own, "-j", 1).exit_code == 130
    assert noted[0] > 0
    assert not list(tmp_path.rglob("*.failed.json"))
    assert fedrepro("run", own, "-j", 1).exit_code == 130  # it was only interrupted
    with monkeypatch.context() as crash:
        crash.setattr(Store, "forget_failure", lambda *_: None)
        fedrepro("run", own, "-j", 1)
    said = fedrepro("failures", own, "--results", tmp_path / "results").output
    assert "failed: its process was the command itself, which ended; the same command computes it" in said
    assert not elsewhere
    fedrepro("run", own, "-j", 1)
    assert elsewhere


def test_the_text_travels_with_a_run_to_a_process_without_the_file(own: Path, tmp_path: Path) -> None:
    run = next(iter(plan.make([load_spec(own, "quick")], False).runs.values()))
    stored = tmp_path / "run.pickle"
    stored.write_bytes(pickle.dumps(run))
    own.with_name("my_method.py").unlink()
    code = (
        "import pickle, sys; from fedrepro import registry; run = pickle.load(open(sys.argv[1], 'rb'));"
        "print(registry.methods()[run.setting.algorithm].cls.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code, stored], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "TwiceAsMany"


def test_the_identity_is_that_of_the_code_that_a_run_reaches(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, before = own.with_name("my_method.py"), ids(own)
    file.write_text(METHOD.replace("the number of times", "how often") + "\n\nUNUSED = 3\n# a comment\n")
    assert ids(own) == before
    file.rename(own.with_name("other_name.py"))
    own.write_text(own.read_text().replace("my_method.py", "other_name.py"))
    assert ids(own) == before
    own.with_name("other_name.py").write_text(METHOD.replace("self.Q2 * self.extra", "self.Q2 + self.extra"))
    assert len(ids(own) & before) == len(before) // 2, "only the runs of fedcgds stay"


def test_the_identity_includes_the_method_of_the_package_from_which_it_derives(own: Path) -> None:
    from fedrepro.problems.clustering.methods.fedmgs import FedMGS
    from fedrepro.runs.identity import code

    load_spec(own, "quick")
    reached = code.reached_by([registry.methods()["twiceasmany"].cls])
    assert code.definition_of(FedMGS) in reached


def test_affected_knows_methods_and_modules_of_own_specs_and_their_results(
    own: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own.parent)
    line = "mine/small  2 of 4 curves  twiceasmany"
    for name in ("twiceasmany", "my_method.py"):
        assert fedrepro("affected", name).output.splitlines()[0].split("  (")[0].rstrip() == line
    assert "(no results)" in fedrepro("affected", "my_method.py").output
    fedrepro("run", own, "-j", 1)
    assert fedrepro("affected", "my_method.py").output.startswith(f"{line}\n")
    *_, total = fedrepro("affected", "fedmgs").output.splitlines()
    assert total.endswith(" with results at the paper tier, 1 of your own with results")


def test_an_edit_makes_results_stale(own: Path, fedrepro: Call) -> None:
    fedrepro("run", own, "-j", 1)
    own.with_name("my_method.py").write_text(METHOD.replace("* self.extra", "* self.extra * 2"))
    assert "the code that computes it changed (2 of 4 curves: twiceasmany)" in fedrepro("verdict", own).output


def test_a_changed_default_is_like_changed_code(own: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own.parent)
    own.write_text(own.read_text().replace("Q1: 2, extra: [1, 3]", "Q1: [2, 3]").replace("extra=3", "Q1=3"))
    fedrepro("run", own, "-j", 1)
    verdict, *_ = fedrepro("verdict", own).output.splitlines()
    assert verdict.startswith("holds ")
    for old, new, why, then in (
        ("= FACTOR", "= 3", "a default changed: extra was 2 and is 3 (2 of 4 curves)", "run mine/small"),
        (
            "self.Q2 *",
            "1 + self.Q2 *",
            "the code that computes it changed (2 of 4 curves: twiceasmany)",
            "check mine/small",
        ),
    ):
        own.with_name("my_method.py").write_text(METHOD.replace(old, new))
        first, *_ = fedrepro("verdict", own).output.splitlines()
        assert first == verdict
        _, second, third, *_, last = fedrepro("why", "small.1").output.splitlines()
        assert (second.startswith("holds: margin"), third) == (True, f"stale: {why}")
        assert last.endswith(f": fedrepro {then}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "defines no method (a class that derives from fedrepro.Method)"),
        ("x = = 1", "my_method.py:1: SyntaxError: invalid syntax"),
        ("import sys\nsys.exit('no licence')", "my_method.py:2: SystemExit: no licence"),
        ("\nimport nowhere_at_all", "my_method.py:2: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        (METHOD.replace("TwiceAsMany", "FedPALM"), "the class FedPALM has the name of the method 'fedpalm'; rename it"),
        (METHOD.replace("@dataclass(frozen=True)", ""), "the class TwiceAsMany needs the line @dataclass(frozen=True)"),
        (
            "from fedrepro import Method\nclass A(Method):\n    m: int = 1",
            "the class A needs a function rounds, as every",
        ),
        (
            METHOD.replace("Annotated[int, Whole(1)]", "'Anotated[int]'"),
            "an annotation of the class TwiceAsMany is not valid: name 'Anotated' is not defined",
        ),
    ],
)
def test_what_is_wrong_with_a_module_is_said_at_the_key(own: Path, text: str, message: str) -> None:
    own.with_name("my_method.py").write_text(text)
    with pytest.raises(SpecErrors) as error:
        load_spec(own, "quick")
    assert message in str(error.value)
    assert f"{own}:5:9" in str(error.value)


ROUNDS = re.search(r"    def rounds.*", METHOD, re.DOTALL)[0]  # type: ignore[index]
BROKEN = METHOD.replace("TwiceAsMany", "Broken").replace(
    ROUNDS, "    def rounds(self, problem, rng, **given):\n        pass"
)


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        (
            "def rounds(self, problem, rng, **given):\n        problem.initial(1)",
            "rounds has no yield and returns nothing",
        ),
        (
            "def rounds(self, problem, rng, **given):\n        def inner():\n            yield 1\n        return None",
            "rounds has no yield and returns nothing, so the method has no states; write `yield state` at the initial",
        ),
        (
            "def rounds(self, problem):\n        yield problem.initial(1)",
            "rounds cannot be called with what every method is given (too many positional arguments); write",
        ),
        (
            "def rounds(self, problem, rng):\n        yield problem.initial(1)",
            "rounds cannot be called with what every method is given (got an unexpected keyword argument 'ledger')",
        ),
        ("rounds = 3", "rounds is int, not a function; write `def rounds(self, problem, rng, **given):`"),
        ("async def rounds(self, problem, rng, **given):\n        yield 1", "rounds is async; write `def rounds("),
    ],
)
def test_a_mistake_in_rounds_is_said_before_anything_runs(own: Path, rounds: str, message: str) -> None:
    module = own.with_name("my_method.py")
    module.write_text(METHOD.replace(ROUNDS, f"    {rounds}\n"))
    with pytest.raises(SpecErrors) as error:
        load_spec(own, "quick")
    assert f"{module}: the class TwiceAsMany: {message}" in str(error.value)
    assert f"{own}:5:9" in str(error.value)


@pytest.mark.parametrize(
    "rounds",
    [
        "def rounds(self, problem, rng, **given):\n        return FedMGS(m=self.m).rounds(problem, rng, **given)",
        "def rounds(self, problem, rng, ledger, init, clients):\n        yield problem.start(init, rng)",
        "rounds = FedMGS.rounds",
        "@staticmethod\n    def rounds(problem, rng, **given):\n        yield problem.start(given['init'], rng)",
    ],
)
def test_rounds_that_give_states_are_valid(own: Path, rounds: str) -> None:
    own.with_name("my_method.py").write_text(METHOD.replace(ROUNDS, f"    {rounds}\n"))
    load_spec(own, "quick")


def test_a_method_of_the_package_has_no_mistake_in_rounds() -> None:
    for entry in registry.methods().values():
        assert own_rounds.mistake(entry.cls, "") == ""


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (BROKEN, "the class Broken: rounds has no yield and returns nothing"),
        (BROKEN.replace("@dataclass(frozen=True)", ""), "the class Broken needs the line @dataclass(frozen=True)"),
        (
            "from fedrepro import Method\nclass Broken(Method):\n    m: int = 1",
            "the class Broken needs a function rounds",
        ),
    ],
)
def test_a_class_with_a_mistake_matters_only_where_it_is_named(own: Path, other: str, message: str) -> None:
    own.with_name("my_method.py").write_text(f"{METHOD}\n{other}")
    load_spec(own, "quick")
    own.write_text(own.read_text().replace("m: 6, Q1: 2, extra: [1, 3]", "").replace("twiceasmany", "broken"))
    with pytest.raises(SpecErrors) as error:
        load_spec(own, "quick")
    (said,) = error.value.messages
    assert message in said


def test_duel_takes_one_class_of_a_file_with_another_that_has_a_mistake(own: Path, fedrepro: Call) -> None:
    file = own.with_name("my_method.py")
    file.write_text(f"{METHOD}\n{BROKEN}")
    options = ("--data", "digits", "--trials", 1, "--rounds", 1, "-j", 1)
    done = fedrepro("duel", f"{file}:TwiceAsMany", "fedmgs", *options)
    assert done.exit_code == 0, done.output
    refused = fedrepro("duel", f"{file}:Broken", "fedmgs", *options)
    assert (refused.exit_code, "the class Broken: rounds has no yield" in refused.stderr) == (2, True), refused.output


def test_a_module_beside_the_file_is_not_searched(own: Path) -> None:
    own.with_name("helper.py").write_text("X = 1")
    own.with_name("my_method.py").write_text(f"import helper.deep\n{METHOD}")
    with pytest.raises(SpecErrors) as error:
        load_spec(own, "quick")
    advice = f"({own.with_name('helper.py')}: put it into the same file, or install it; the folder is not searched)"
    assert f"my_method.py:1: ModuleNotFoundError: No module named 'helper' {advice}" in str(error.value)


def test_claims_about_a_method_of_ones_own_file(own: Path, fedrepro: Call) -> None:
    assert fedrepro("run", own, "-q", "-j", 1).exit_code == 0
    for name in [name for name in registry.methods() if own_modules.of(name) is not None]:
        del registry.methods()[name]
    asked = fedrepro("verdict", own, "--about", "twiceasmany")
    assert (asked.exit_code, "1 holds; 1 claim" in asked.output) == (0, True), asked.output


def test_a_module_that_is_absent_or_installed(own: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own.with_name("my_method.py").unlink()
    with pytest.raises(SpecErrors, match=re.escape("my_method.py: cannot be read (No such file or directory)")):
        load_spec(own, "quick")
    own.write_text(own.read_text().replace("my_method.py", "no.such.module"))
    with pytest.raises(SpecErrors, match=r"'no.such.module' is neither a Python file .* nor an installed module"):
        load_spec(own, "quick")
    (tmp_path / "installed_methods.py").write_text(METHOD)
    monkeypatch.syspath_prepend(str(tmp_path))
    own.write_text(own.read_text().replace("no.such.module", "installed_methods"))
    assert load_spec(own, "quick").settings()[0].own is not None


@pytest.fixture
def package(own: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An installed package with a method, and a spec that uses it without ``import``; returns the spec."""
    site = tmp_path / "site"
    facts = site / "tiny_plugin-1.0.dist-info"
    facts.mkdir(parents=True)
    (site / "tiny_plugin.py").write_text(METHOD)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-plugin\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[fedrepro.methods]\ntwiceasmany = tiny_plugin:TwiceAsMany\n")
    monkeypatch.syspath_prepend(str(site))
    own.with_name("my_method.py").unlink()
    own.write_text(own.read_text().replace("import: my_method.py\n", ""))
    return own


def test_an_installed_package_offers_methods_by_entry_points(package: Path, fedrepro: Call) -> None:
    ran = fedrepro("run", package, "-j", 1)
    assert "8 runs computed, 0 reused, 0 failed" in ran.output, ran.output
    assert "1 holds; 1 claim" in fedrepro("verdict", package).output
    (setting,) = {s.algorithm: s for s in load_spec(package, "quick").settings() if s.own is not None}.values()
    assert setting.algorithm == "twiceasmany"


def test_a_method_of_an_installed_package_is_listed_and_described(
    package: Path, fedrepro: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = {name: entry for name, entry in registry.methods().items() if name != "twiceasmany"}
    monkeypatch.setattr(registry, "methods", lambda: methods)  # as in a new process
    assert re.search(
        r"^  twiceasmany +of the installed package tiny-plugin$", fedrepro("list", "algorithms").output, re.M
    )
    said = fedrepro("describe", "twiceasmany").output
    assert said.startswith("algorithm twiceasmany\n")
    assert "the one that the spec or `fedrepro duel` names" in said


def test_an_entry_point_of_another_name_or_without_a_method_is_refused(package: Path, tmp_path: Path) -> None:
    points = tmp_path / "site" / "tiny_plugin-1.0.dist-info" / "entry_points.txt"
    points.write_text("[fedrepro.methods]\ntwice = tiny_plugin:TwiceAsMany\n")
    text = package.read_text()
    package.write_text(text.replace("algorithm: twiceasmany", "algorithm: twice"))
    wrong = "the entry point 'twice = tiny_plugin:TwiceAsMany' of tiny-plugin: its name must be that of its class in"
    with pytest.raises(SpecErrors, match=re.escape(wrong)):
        load_spec(package, "quick")
    points.write_text("[fedrepro.methods]\ntwice = absent_plugin:Twice\n")
    with pytest.raises(SpecErrors, match="of tiny-plugin: 'absent_plugin' is neither a Python file"):
        load_spec(package, "quick")


def test_sidecars_do_not_contain_the_text(own: Path, fedrepro: Call, tmp_path: Path) -> None:
    fedrepro("run", own, "-j", 1)
    facts = json.loads((tmp_path / "results" / "mine" / "small.json").read_text())
    assert "own" not in facts["settings"][0]
    assert "import fedrepro" not in json.dumps(facts)


def test_only_modules_of_users_are_replaced(own: Path) -> None:
    load_spec(own, "quick")
    assert own_modules.of("fedmgs") is None
    module = own_modules.of("twiceasmany")
    assert module is not None
    assert own_modules.source(module.name) == METHOD
    with pytest.raises(UserError, match="defines no method"):
        own_modules.register(own_modules.OwnModule("empty.py", "", "clustering"))
