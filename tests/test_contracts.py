"""The contracts of every registered name; names are discovered, so adding a file enrols it.

Every method is run on the tiny instance of its problem (``tiny.TINY``), from Python and through the machinery of the
command line.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import hashlib
import importlib.util
import inspect
import itertools
import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import yaml
from scipy import sparse
from threadpoolctl import threadpool_limits

import fedrepro
from fedrepro import registry
from fedrepro.compression import compressors
from fedrepro.errors import ParameterError, UserError
from fedrepro.ledger import COUNTS
from fedrepro.protocols import Method, Problem, Work
from fedrepro.runs.compute import drive, execute
from fedrepro.runs.compute.drive import History, randomness
from fedrepro.runs.compute.run import Run
from fedrepro.runs.identity import code, plan
from fedrepro.runs.predict import timings as predict
from fedrepro.runs.predict.machine import LIBRARIES
from fedrepro.runs.storage.store import Store
from fedrepro.runs.workers import local
from fedrepro.spec.model import Figure, Setting
from fedrepro.spec.read import load

from . import tiny
from .conftest import ROOT

ALGORITHMS = registry.methods()
DATASETS = registry.datasets()
PARTITIONS = registry.partitions()
PROBLEMS = registry.problems()
METHODS = {entry.cls.__name__: entry.cls for entry in ALGORITHMS.values()}
TRIALS = (1, 2)

every_case = pytest.mark.parametrize("name", tiny.CASES)
OWN = sorted({entry.problem for entry in ALGORITHMS.values()})
"""Problems with methods of their own; on what derives from them these run too (``tests/test_own_problems.py``)."""
every_problem = pytest.mark.parametrize("name", OWN)
every_method = pytest.mark.parametrize("name", METHODS)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_is_a_frozen_dataclass_that_can_be_made_and_says_what_it_solves(name: str) -> None:
    entry = ALGORITHMS[name]
    method = entry.make()
    assert dataclasses.is_dataclass(method)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(method, dataclasses.fields(method)[0].name if dataclasses.fields(method) else "x", 1)
    assert set(entry.preset) <= {f.name for f in dataclasses.fields(method)}
    assert entry.problem in registry.problems()
    assert set(entry.papers) <= {*registry.PAPERS, "beyond"}
    assert entry.label
    assert entry.summary
    signature = inspect.signature(entry.cls.rounds)
    assert list(signature.parameters)[:3] == ["self", "problem", "rng"]
    assert {"ledger", "init", "clients"} <= set(signature.parameters)
    module = inspect.getmodule(entry.cls)
    assert module is not None
    said = f"{module.__doc__} {entry.cls.__doc__}"
    assert re.search(r"section|Sec\.|Appendix|Remark|Algorithm|\d{4}", said), f"{name} names no source"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_has_a_style_of_its_own(name: str) -> None:
    from fedrepro.plotting import style

    assert style.method(name) != style.NEUTRAL, f"give the entry of '{name}' a look: a colour and a marker"


def _explains_its_parameters(cls: type) -> None:
    assert cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    for field in dataclasses.fields(cls):
        said = re.search(rf"\b{field.name}(, \w+)* : ", cls.__doc__ or "")
        assert said, f"the docstring of {cls.__name__} does not say what {field.name} is"


@pytest.mark.parametrize("name", DATASETS)
def test_a_dataset_is_a_frozen_dataclass_with_a_shape_that_says_what_its_parameters_are(name: str) -> None:
    entry = DATASETS[name]
    assert entry.kind in {"samples", "ratings", "views", "images"} | {p.data_kind for p in registry.problems().values()}
    assert entry.summary
    _explains_its_parameters(entry.cls)
    if dataclasses.MISSING not in entry.parameters().values():
        assert isinstance(entry.make().shape(), dict)
    given = ["path"] if entry.source is not None else []
    given += ["rng"] if entry.draws else []
    assert list(inspect.signature(entry.cls.load).parameters) == ["self", *given]
    reached = code.reached(code.Definition(entry.cls.__module__, entry.cls.__name__))
    for base in entry.cls.__mro__:
        own = base.__module__.startswith("fedrepro.datasets.")
        assert not own or code.Definition(base.__module__, base.__name__) in reached


@pytest.mark.parametrize("name", [name for name, entry in DATASETS.items() if entry.source is not None])
def test_a_stand_in_and_the_loading_of_real_data_are_no_part_of_each_other(name: str) -> None:
    entry = DATASETS[name]
    assert entry.stand_in is not None, f"'{name}' needs files and has no stand-in"
    loading = code.Definition(entry.cls.__module__, entry.cls.__name__)
    made_up = code.Definition(entry.stand_in.__module__, entry.stand_in.__name__)
    assert loading not in code.reached(made_up)
    assert made_up not in code.reached(loading)
    assert not any(definition.module == "fedrepro.datasets.standins" for definition in code.reached(loading))


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_partition_is_a_frozen_dataclass_that_says_what_its_parameters_are(name: str) -> None:
    entry = PARTITIONS[name]
    assert entry.summary
    _explains_its_parameters(entry.cls)
    entry.make().check()


@pytest.mark.parametrize("module", sorted((ROOT / "fedrepro").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_public_function_and_class_is_documented(module: Path) -> None:
    import ast

    tree = ast.parse(module.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree) or not tree.body, f"{module.name} has no docstring"
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)) and not child.name.startswith("_"):
                assert ast.get_docstring(child), f"{module.name}:{child.lineno}: {child.name} has no docstring"
                if isinstance(child, ast.ClassDef):
                    todo.append(child)


# -- every method, run on the tiny instance of its problem -------------------------------------------------------------


def figure_of(name: str, metrics: tuple[str, ...]) -> Figure:
    """A figure with one curve, of the case ``name``, read from a spec as the command line reads it."""
    made = tiny.of(tiny.algorithm(name).problem)
    for module in made.needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.yaml"
        path.write_text(yaml.safe_dump(made.spec(name, metrics)), encoding="utf-8")
        return load(path, "quick")


@functools.cache
def setting_of(name: str) -> Setting:
    """The item of ``curves`` for the algorithm."""
    return figure_of(name, PROBLEMS[tiny.algorithm(name).problem].default_metrics).settings()[0]


def method_of(name: str) -> Any:
    """The method as a user makes it."""
    return tiny.algorithm(name).make(**tiny.of(tiny.algorithm(name).problem).values(name))


def problem_of(name: str, trial: int = 1, freeze: Callable[[Any], None] = lambda thing: None) -> tuple[Any, Any]:
    """A fresh problem for the algorithm, as a user makes it, and the data it is made of."""
    setting = setting_of(name)
    data = copy.deepcopy(_data(setting.problem, name, trial))
    freeze(data)
    made = PROBLEMS[setting.problem].cls.of(*data, setting.problem_params)
    freeze(made)
    return made, data


_DATA: dict[tuple[str, int], Any] = {}


def _data(problem: str, name: str, trial: int) -> Any:
    if (problem, trial) not in _DATA:
        _DATA[problem, trial] = execute.data_of(setting_of(name), trial, stand_in=True)
    return _DATA[problem, trial]


@functools.cache
def shared_problem(problem: str) -> Any:
    """One problem that all its methods run on one after another."""
    return problem_of(next(name for name, entry in ALGORITHMS.items() if entry.problem == problem))[0]


def begun(name: str, problem: Any, init: Any = None, ledger: Any = None) -> Iterator[Any]:
    """The states of trial 1."""
    init = problem.initial(1) if init is None else init
    return method_of(name).rounds(problem, randomness(problem.name, 1), ledger=ledger, init=init)


@functools.cache
def measurable(name: str) -> tuple[str, ...]:
    """The metrics that can be measured on the method's states."""
    problem = shared_problem(tiny.algorithm(name).problem)
    state, measured = next(begun(name, problem)), []
    for metric in problem.metrics:
        try:
            problem.measure(state, (metric,))
        except UserError:  # this state or these data do not have it, and the error states so
            assert metric not in problem.default_metrics
        else:
            measured.append(metric)
    return tuple(measured)


def ran(name: str, problem: Any, trial: int = 1) -> History:
    """A run of two rounds, everything measured."""
    return fedrepro.run(method_of(name), problem, 2, trial=trial, metrics=measurable(name))


@functools.cache
def usual(name: str) -> dict[str, str]:
    """Fingerprints of a run on a problem that nothing else has run on."""
    return recorded(ran(name, problem_of(name)[0]))


# What is in an object


def contents(thing: Any) -> dict[str, Any]:
    """Every array, number and text that can be reached from an object, by its path."""
    numbers: dict[str, Any] = {}
    _collect(thing, "", numbers, set())
    return numbers


def _collect(thing: Any, path: str, numbers: dict[str, Any], seen: set[int]) -> None:
    if thing is None or id(thing) in seen:
        return
    if isinstance(thing, bool | int | float | str | np.ndarray | np.generic):
        numbers[path] = thing
        return
    seen.add(id(thing))
    parts: Any = ()
    if sparse.issparse(thing):
        parts = {part: getattr(thing, part) for part in ("data", "indices", "indptr")}.items()
    elif isinstance(thing, Mapping):
        parts = thing.items()
    elif isinstance(thing, list | tuple):
        parts = enumerate(thing)
    elif hasattr(thing, "__array__"):  # of JAX
        numbers[path] = np.asarray(thing)
    elif hasattr(thing, "__dict__") and not callable(thing):
        parts = list(vars(thing).items())
    for key, part in parts:
        _collect(part, f"{path}.{key}", numbers, seen)


def prints(thing: Any) -> dict[str, str]:
    """A fingerprint of everything in an object, to the last bit."""
    return {path: fingerprint(value) for path, value in contents(thing).items()}


def fingerprint(value: Any) -> str:
    """Type, shape and bits of an array or a number."""
    array = np.asarray(value)
    return f"{array.dtype} {array.shape} {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]}"


def recorded(history: History) -> dict[str, str]:
    """Fingerprints of all that a run gave but its time."""
    values = {f"values.{name}": column for name, column in history.values.items()}
    sent = {name: value for name, value in dataclasses.asdict(history.ledger).items() if name != "clock"}
    given = {**values, "rounds": history.rounds, "why": history.diverged, "state": history.state, "ledger": sent}
    return prints(given)


def freeze(thing: Any) -> None:
    """Make every array in an object read-only."""
    for value in contents(thing).values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The paths whose content differs."""
    return [path for path, value in before.items() if after.get(path) != value]


# The initial point


@every_case
def test_a_method_yields_the_initial_point_before_any_step_or_one_state(name: str) -> None:
    problem, made = problem_of(name)[0], tiny.of(tiny.algorithm(name).problem)
    method = method_of(name)
    ledger = tiny.Recorder()
    states = begun(name, problem, ledger=ledger)
    first = copy.deepcopy(next(states))
    if method.one_shot:
        assert next(states, None) is None, "it has rounds: leave one_shot False"
        return
    made.starts(problem, method, problem.initial(1), first)
    second = next(states, None)
    assert second is not None, "it has no rounds: set one_shot = True in the class"
    assert changed(prints(first), prints(second)), "a round changed nothing"


@pytest.mark.parametrize("name", [name for name in tiny.CASES if not tiny.algorithm(name).cls.one_shot])
def test_a_method_starts_where_it_is_told_to_and_leaves_that_point_alone(name: str) -> None:
    problem, made, method = problem_of(name)[0], tiny.of(tiny.algorithm(name).problem), method_of(name)
    init = made.explicit(problem, method, next(begun(name, problem)))
    freeze(init)
    before = prints(init)
    states = begun(name, problem, init)
    made.starts(problem, method, init, next(states))
    for _ in itertools.islice(states, 2):
        pass
    assert not changed(before, prints(init))


# Averages

STILL: dict[str, tuple[str, Mapping[str, Any], tuple[str, ...]]] = {
    "FedMAvg": ("fedmavg", {"gamma2": 1e300}, ("W",)),
    "FedMAvgMC": ("fedmavg-mc", {"c": 1e300, "d": 1e300}, ("U", "V")),
    "IMCPerFedSI": ("imc-perfedsi", {"eta": 1e-300}, ("U", "V")),
    "IMCPlain": ("imc-plain", {"eta": 1e-300}, ("U", "V")),
    "ShiftAveraging": ("shift-fedavg", {"eta": 1e-300}, ("theta", "c")),
}
"""An algorithm of each class whose server averages models of drawn clients, steps that move nothing, and the model."""

NO_AVERAGE = {
    "FedMAvgQuantized", "FedMAvgSNCP",  # their average is FedMAvg's, or of changes
    "FedMGS", "FedMGSSNCP", "FedMGSQuantized", "FedMCADMM",  # the server keeps the share of every client
    "MVLSA", "AltMaxVar", "CuteMaxVar",  # m is a rank
    "PersonalAveraging", "Ditto", "PerFedSIConcat", "PerFedSIMask",  # tests/test_personal_methods.py
}  # fmt: skip


@every_method
def test_where_no_client_moves_the_server_s_model_stays(name: str) -> None:
    """The weights of the drawn clients sum to 1, however many are drawn."""
    fields = {field.name for field in dataclasses.fields(METHODS[name])}
    if name not in STILL:
        assert name in NO_AVERAGE or not fields & {"m", "fraction"}, "say in STILL how it moves nothing"
        return
    case, still, model = STILL[name]
    problem, start = problem_of(case)[0], tiny.of(ALGORITHMS[case].problem)
    init = start.explicit(problem, method_of(case), next(begun(case, problem)))
    for m in (1, 3, 4):
        method = dataclasses.replace(method_of(case), m=m, **still)
        states = method.rounds(problem, randomness(problem.name, 1), init=init)
        first = copy.deepcopy(next(states))
        for state in itertools.islice(states, 5):
            for part in model:
                np.testing.assert_allclose(getattr(state, part), getattr(first, part), rtol=1e-13)


# Repetition


@every_case
def test_two_runs_agree_to_the_last_bit(name: str) -> None:
    once = recorded(ran(name, shared_problem(tiny.algorithm(name).problem)))
    assert once.keys() == usual(name).keys()
    assert not changed(once, usual(name))
    if not method_of(name).one_shot:  # which may draw nothing
        assert changed(once, recorded(ran(name, problem_of(name)[0], trial=2))), "all trials are one"


@every_case
def test_a_method_leaves_the_problem_and_its_data_alone(name: str) -> None:
    problem, data = problem_of(name)
    for _ in range(2):  # the second time also what the first has kept with the problem
        before = prints([problem, *data])
        ran(name, problem)
        assert not changed(before, prints([problem, *data]))


@every_case
def test_a_method_runs_on_arrays_that_cannot_be_written_to(name: str) -> None:
    assert not changed(usual(name), recorded(ran(name, problem_of(name, freeze=freeze)[0])))


# Messages


@every_case
def test_messages_are_counted_and_are_those_the_paper_sends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = _compressed(monkeypatch)
    method, problem, ledger = method_of(name), problem_of(name)[0], tiny.Recorder()
    before, seen = None, 0
    for s, state in enumerate(itertools.islice(begun(name, problem, ledger=ledger), 4)):
        if method.silent:
            assert ledger.calls == [], "it sends messages: leave silent False"
        else:
            sent, expected = tiny.messages(ledger.calls[seen:]), tiny.sent(method)
            assert s == 0 or sent, "it sends nothing in a round: set silent = True"
            if expected is not None:
                tiny.agree(sent, expected(method, problem, s, before, state))
        before, seen = copy.deepcopy(state), len(ledger.calls)
    assert method.silent or sum(ledger.totals().values()) > 0
    counted = Counter((numbers, -(-bits // 8)) for _, numbers, bits, _, _ in ledger.calls)
    assert not packed - counted, f"sent in other sizes than counted: {packed - counted}"
    _adds_up(ledger)
    assert fedrepro.run(method, problem, s).ledger.totals() == ledger.totals()


def _compressed(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[int, int]]:
    """All messages of compressors from now on: their counts, numbers and packed bytes.

    A compressed one must come back from these bytes as it is used in the run, to the last bit.
    """
    sizes: Counter[tuple[int, int]] = Counter()

    def noted(compress: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, D: np.ndarray, rng: np.random.Generator) -> Any:
            message = compress(self, D, rng)
            packed = message.pack(single=True)
            sizes[message.values.size, len(packed)] += 1
            again = self.unpack(packed, D.shape, single=True)
            assert self.exact or again.values.tobytes() == message.values.tobytes()
            return message

        return call

    for cls in vars(compressors).values():
        if inspect.isclass(cls) and "compress" in vars(cls) and cls is not compressors.Compressor:
            monkeypatch.setattr(cls, "compress", noted(cls.compress))
    return sizes


def _adds_up(ledger: tiny.Recorder) -> None:
    sums = dict.fromkeys(COUNTS, 0)
    for way, numbers, bits, clients, setup in ledger.calls:
        if not setup:
            sums[f"{way}link_scalars"] += numbers * clients
            sums[f"{way}link_bits"] += bits * clients
    assert ledger.totals() == sums
    assert sum(ledger.by_kind.values()) == sums["uplink_scalars"] + sums["downlink_scalars"]
    assert ledger.setup_scalars == sum(numbers * clients for _, numbers, _, clients, setup in ledger.calls if setup)


# Times


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["clustering", "completion", "gcca", "gcca-deep"])
def test_after_the_warm_up_nothing_is_loaded_or_compiled(problem: str) -> None:
    """In a new process, where nothing is loaded yet: what time axes show is the work of warm kernels."""
    if any(importlib.util.find_spec(module) is None for module in tiny.of(problem).needs):
        pytest.skip(f"needs {', '.join(tiny.of(problem).needs)}")
    script = f"from tests.test_contracts import later; print(*later({problem!r}), sep=chr(10))"
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    before, *after = ran.stdout.splitlines()
    assert before != "0"  # what is watched is there
    assert after == []


def later(problem: str) -> Iterator[str]:
    """How much the warm-ups of a problem's methods loaded and compiled; then what their rounds still did."""
    watched = list(_watched(problem))
    yield str(sum(len(before) for before, _ in watched))
    yield from (line for _, after in watched for line in after)


def _watched(problem: str) -> Iterator[tuple[set[str], set[str]]]:
    """For each method of a problem with rounds: what its warm-up loads and compiles, and what its next rounds do."""
    from numba.core.dispatcher import Dispatcher

    compiled: list[str] = []
    if "jax" in tiny.of(problem).needs:
        from fedrepro.nets import backend

        backend.load().monitoring.register_event_duration_secs_listener(
            lambda event, *_, **__: compiled.append(event) if "compile" in event else None
        )

    def loaded() -> set[str]:
        own = [(name, module) for name, module in list(sys.modules.items()) if name.startswith("fedrepro.")]
        kernels = ((name, at, thing) for name, module in own for at, thing in vars(module).items())
        made = {f"{at}{kernel.signatures}" for _, at, kernel in kernels if isinstance(kernel, Dispatcher)}
        return {*sys.modules, *made, *(f"{event} {number}" for number, event in enumerate(compiled))}

    for name in tiny.CASES:
        if tiny.algorithm(name).problem == problem and not tiny.algorithm(name).cls.one_shot:
            method, on = method_of(name), problem_of(name)[0]
            with threadpool_limits(limits=1):
                first = loaded()
                drive.warm_up(method, on, randomness(on.name, 1), on.initial(1))
                then = loaded()
                for _ in itertools.islice(begun(name, on), 5):
                    pass
                yield then - first, {f"{name}: {thing}" for thing in loaded() - then}


# Python and the command line


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs of this module are stored, with what they share."""
    return tmp_path_factory.mktemp("contracts")


@every_case
def test_the_command_line_records_what_python_does(name: str, house: Path) -> None:
    figure = figure_of(name, measurable(name))
    (setting,) = figure.settings()
    method = method_of(name)
    assert method == tiny.algorithm(name).cls(**setting.params)
    planned = plan.make([figure], stand_in=True)
    assert [run.trial for run in planned.runs.values()] == list(TRIALS)
    compiles = bool(tiny.of(setting.problem).needs)  # for every trial again, so that one is enough
    for run in list(planned.runs.values())[: 1 if compiles else None]:
        ((_, status),) = local.attempt([run], house / "store", house / "scratch")
        record = Store(house / "store").read(run.id)
        assert record is not None, status
        data, client = execute.data_of(setting, run.trial, run.stand_in)
        problem = PROBLEMS[setting.problem].cls.of(data, client, setting.problem_params)
        history = fedrepro.run(
            method,
            problem,
            setting.rounds,
            trial=run.trial,
            metrics=setting.metrics,
            record_every=setting.record_every,
            record_dense=setting.record_dense,
        )
        assert set(record.metrics) == {*measurable(name)}
        of_line = {**record.metrics, **dict(zip(COUNTS, record.counts.T, strict=True))}
        assert prints({**of_line, "rounds": record.rounds}) == prints({**history.values, "rounds": history.rounds})
        assert record.meta["reason"] == (history.diverged or "")
        assert record.meta["setup_scalars"] == history.ledger.setup_scalars
        assert record.meta["by_kind"] == history.ledger.by_kind
        kept = setting.artifacts if run.trial == 1 else ()
        assert prints(record.artifacts) == prints(problem.artifacts(history.state, kept))
        assert bool(record.artifacts) == (run.trial == 1)


@every_case
def test_run_measures_the_default_metrics_where_none_are_named(name: str) -> None:
    problem = problem_of(name)[0]
    history = fedrepro.run(method_of(name), problem, 2)
    assert list(history.values) == [*problem.default_metrics, *COUNTS]
    assert history.rounds.tolist() == ([0] if method_of(name).one_shot else [0, 1, 2])
    assert all(np.isfinite(history[metric]).all() for metric in problem.default_metrics)


# Protocols


def members(protocol: type) -> set[str]:
    """The public names that a protocol lists."""
    return {name for name in {**vars(protocol), **protocol.__annotations__} if not name.startswith("_")}


def takes_what(function: Any, protocol: Any) -> None:
    """Fail unless a function can be called as the protocol's can."""
    given = inspect.signature(protocol).parameters.values()
    positional = [None for p in given if p.kind is p.POSITIONAL_OR_KEYWORD]
    inspect.signature(function).bind(*positional, **{p.name: None for p in given if p.kind is p.KEYWORD_ONLY})


@every_method
def test_a_method_has_the_members_of_the_protocol(name: str) -> None:
    cls = METHODS[name]
    assert Method in cls.__mro__, f"{name} does not derive from fedrepro.protocols.Method"
    assert members(Method) <= set(dir(cls))
    assert isinstance(cls.one_shot, bool)
    assert list(inspect.signature(cls.rounds).parameters) == list(inspect.signature(Method.rounds).parameters)
    assert isinstance(inspect.getattr_static(cls, "cost"), staticmethod)
    takes_what(cls.cost, Method.cost)
    assert any(p.kind is p.VAR_KEYWORD for p in inspect.signature(cls.check).parameters.values())


@every_problem
def test_a_problem_has_the_members_of_the_protocol(name: str) -> None:
    cls = PROBLEMS[name].cls
    assert Problem in cls.__mro__, f"{name} does not derive from fedrepro.protocols.Problem"
    assert members(Problem) <= set(dir(cls))
    assert cls.name == name
    assert cls.default_metrics
    assert set(cls.default_metrics) <= set(cls.metrics)
    assert all(key == metric.name for key, metric in cls.metrics.items())
    assert set(cls.stored_parameters or ()) <= set(cls.parameters)
    for member in ("check", "of", "prepare", "stored", "initial", "measure", "artifacts", "diverged"):
        takes_what(getattr(cls, member), getattr(Problem, member))


class Only:
    """An object that offers only the members of a protocol."""

    def __init__(self, thing: Any, protocol: type) -> None:
        self._thing, self._members = thing, members(protocol)

    def __getattr__(self, name: str) -> Any:
        if name not in self._members:
            raise AttributeError(f"'{name}' is asked of it, and the protocol does not list it")
        value = getattr(self._thing, name)
        if name != "rounds":
            return value
        return lambda problem, *args, **kwargs: value(problem._thing, *args, **kwargs)


@every_problem
def test_nothing_is_asked_beyond_the_protocols(name: str) -> None:
    algorithm = next(a for a, entry in ALGORITHMS.items() if entry.problem == name and not entry.cls.one_shot)
    problem, method = problem_of(algorithm)[0], method_of(algorithm)
    bare: Any = fedrepro.run(Only(method, Method), Only(problem, Problem), 2)  # type: ignore[arg-type]
    assert recorded(bare) == recorded(fedrepro.run(method, problem, 2))


def facts_of(name: str) -> dict[str, Any]:
    """What is known of the tiny data, as specs are checked by it."""
    setting = setting_of(name)
    shape = DATASETS[setting.dataset].make(**setting.dataset_params).shape()
    facts = {**shape, "P": setting.partition_params.get("P") if setting.partition else 1}
    return facts | ({"K": setting.problem_params["K"]} if setting.problem_params.get("K") is not None else {})


@every_case
def test_a_method_accepts_the_tiny_facts_and_predicts_its_cost(name: str) -> None:
    facts, setting = facts_of(name), setting_of(name)
    method_of(name).check(**facts)
    method_of(name).check(**dict.fromkeys(facts))
    cls = tiny.algorithm(name).cls
    if cls.cost is Method.cost:
        return  # its first rounds are timed
    declared = cls.cost(dict(setting.params), predict.facts(Run("", setting, 1, "", True, "")))
    assert declared.start + declared.round + declared.first != Work()
    assert (declared.round == Work()) == cls.one_shot
    amounts = [*dataclasses.astuple(declared.start), *dataclasses.astuple(declared.round), declared.holds]
    assert all(math.isfinite(value) and value >= 0 for value in amounts)
    assert set(declared.libraries) <= set(LIBRARIES)


@every_case
def test_twice_as_much_of_anything_costs_no_less(name: str) -> None:
    """Every amount of work and the memory; only P is left out: with more clients, each of them has less to do."""
    setting, cls = setting_of(name), tiny.algorithm(name).cls
    sizes = predict.facts(Run("", setting, 1, "", True, ""))

    def amounts(sizes: Mapping[str, Any]) -> np.ndarray:
        cost = cls.cost(dict(setting.params), sizes)
        return np.array([*itertools.chain(*map(dataclasses.astuple, (cost.start, cost.round, cost.first))), cost.holds])

    for size, number in sizes.items():
        if isinstance(number, int | float) and size != "P":
            assert (amounts({**sizes, size: 2 * number}) >= (1 - 1e-12) * amounts(sizes)).all(), size


def checks_facts(cls: type[Any]) -> bool:
    """Whether a method has a check of its own or a field that a size of the data bounds."""
    return cls.check is not Method.check or "AtMost(" in str(get_type_hints(cls, include_extras=True))


@pytest.mark.parametrize("name", [name for name, cls in METHODS.items() if checks_facts(cls)])
def test_a_method_that_checks_facts_refuses_impossible_ones(name: str) -> None:
    cls = METHODS[name]
    algorithm = next(a for a, entry in ALGORITHMS.items() if entry.cls is cls)
    own = {f.name for f in dataclasses.fields(cls)}
    made = tiny.of(ALGORITHMS[algorithm].problem).parameters
    method = cls(**{key: value for key, value in made.items() if key in own})
    usual = PROBLEMS[ALGORITHMS[algorithm].problem].cls.parameters  # without side information, for example
    with pytest.raises(ParameterError):
        method.check(**{**usual, **dict.fromkeys(facts_of(algorithm), 0)})


@every_problem
def test_a_problem_checks_its_parameters(name: str) -> None:
    cls = PROBLEMS[name].cls
    algorithm = next(a for a, entry in ALGORITHMS.items() if entry.problem == name)
    setting, facts = setting_of(algorithm), facts_of(algorithm)
    cls.check(setting.problem_params, facts)
    cls.check(cls.parameters, {})
    for key in cls.parameters:
        with pytest.raises(ParameterError) as refused:
            cls.check({key: "nonsense"}, {})
        assert refused.value.name == key


@every_problem
def test_a_problem_written_and_read_is_the_one_in_memory(name: str, tmp_path: Path) -> None:
    algorithm = next(a for a, entry in ALGORITHMS.items() if entry.problem == name and not entry.cls.one_shot)
    setting, cls = setting_of(algorithm), PROBLEMS[name].cls
    problem, data = problem_of(algorithm)
    cls.prepare(tmp_path, *data, setting.problem_params)
    stored = cls.stored(tmp_path, setting.problem_params)
    assert prints(stored.initial(1)) == prints(problem.initial(1))
    for state in itertools.islice(begun(algorithm, problem), 3):
        for metric in measurable(algorithm):
            assert fingerprint(stored.measure(state, (metric,))[metric]) == fingerprint(
                problem.measure(state, (metric,))[metric]
            )


def test_a_problem_is_the_same_however_many_threads_there_are() -> None:
    data = registry.datasets()["imc"].make(d=64, M=200, k=8).load(np.random.default_rng(0))  # enough to be split
    made = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            made.append(prints(PROBLEMS["imc"].cls.of(data, None, {})))
    assert made[0] == made[1]


def test_a_problem_without_a_tiny_instance_says_what_to_add() -> None:
    with pytest.raises(AssertionError, match=r"'new' has no tiny instance: add one to TINY in tests/tiny.py"):
        tiny.of("new")
    assert set(tiny.TINY) == set(OWN)


@pytest.mark.parametrize("name", [*METHODS, *(entry.cls.__name__ for entry in PROBLEMS.values())])
def test_every_registered_class_can_be_had_from_the_package(name: str) -> None:
    cls = METHODS.get(name) or next(entry.cls for entry in PROBLEMS.values() if entry.cls.__name__ == name)
    assert name in fedrepro.__all__
    assert name in dir(fedrepro)
    assert getattr(fedrepro, name) is cls


def test_every_public_name_of_the_package_is_there() -> None:
    for name in fedrepro.__all__:
        assert getattr(fedrepro, name) is not None
    assert len(METHODS) == len({entry.cls for entry in ALGORITHMS.values()}), "two method classes have one name"
