"""The identity of a run depends only on what computes its numbers.

Each edit is made in a scratch copy of the package, where a process that has not loaded the package before plans one
figure and prints the identities of its runs.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fedrepro
from fedrepro import cpu, registry
from fedrepro.nets import backend
from fedrepro.runs.identity import code

ROOT = Path(fedrepro.__file__).parent
SPEC = """
paper: beyond
figure: probe
problem: {name: clustering, rho: 1e-8}
trials: 2
rounds: 3
dataset: {name: synthetic, N: 60, M: 20, K: 3}
partition: {name: uniform, P: 3}
panels:
  a:
    curves:
      - {algorithm: fedmgs, m: 2}
      - {algorithm: fedmavg}
      - {algorithm: kmeans++}
"""
PROGRAM = """
import os, sys, traceback
import click, filelock, numpy, pandas, pooch, scipy.linalg, scipy.sparse, threadpoolctl, tqdm, yaml

def plan_in(folder):
    os.chdir(folder)
    sys.path.insert(0, folder)
    from fedrepro.runs.identity import plan
    from fedrepro.spec.read import load
    from pathlib import Path
    assert plan.__file__.startswith(folder)
    made = plan.make([load(Path("probe.yaml"), "paper")], False)
    for name, runs in made.by_figure[0].items():
        print(name.split()[0], *(run.id + "/" + run.problem_id for run in runs))

for line in sys.stdin:
    assert "fedrepro" not in sys.modules
    process = os.fork()
    if process == 0:
        try:
            plan_in(line.rstrip("\\n"))
        except BaseException:
            print(traceback.format_exc())
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(process, 0)
    print("end", flush=True)
"""
"""Reads folders of copies; plans each in a process of its own, which finds only the libraries loaded."""


@functools.cache
def sources() -> dict[Path, str]:
    """The text of each module."""
    return {path: path.read_text() for path in ROOT.rglob("*.py")}


def module_of(name: str) -> Path:
    """The file, relative to the package, of the module that defines a top-level name; it occurs once."""
    defined = re.compile(rf"^(?:def|class) {name}\b|^{name}\b.*= ", re.M)
    found = [path for path, text in sources().items() if defined.search(text)]
    assert len(found) == 1, (name, found)
    return found[0].relative_to(ROOT)


class Copy:
    """A copy of the package that can be edited. planner : a process that runs ``PROGRAM``."""

    def __init__(self, planner: subprocess.Popen[str], folder: Path, of: Path = ROOT, *left_out: str) -> None:
        self.planner, self.folder = planner, folder
        link = shutil.copy2 if of == ROOT else os.link
        shutil.copytree(of, folder / "fedrepro", ignore=shutil.ignore_patterns(*left_out), copy_function=link)
        (folder / "probe.yaml").write_text(SPEC)

    def path(self, module: Path) -> Path:
        return self.folder / "fedrepro" / module

    def write(self, path: Path, text: str) -> None:
        """Write a file in place of the one that may be shared with other copies."""
        path.unlink()
        path.write_text(text)

    def edit(self, name: str, old: str, new: str, count: int = 1) -> None:
        """Replace text in the module that defines ``name``."""
        path = self.path(module_of(name))
        text = path.read_text()
        assert old in text, f"'{old}' is not in {path}"
        self.write(path, text.replace(old, new, count))

    def everywhere(self, pattern: str, new: str) -> None:
        changed = 0
        for path in (self.folder / "fedrepro").rglob("*.py"):
            text, n = re.subn(pattern, new, path.read_text())
            changed += n
            if n:
                self.write(path, text)
        assert changed, pattern

    def identities(self) -> dict[str, list[str]]:
        assert self.planner.stdin is not None
        assert self.planner.stdout is not None
        print(self.folder, file=self.planner.stdin, flush=True)
        lines = list(iter(self.planner.stdout.readline, "end\n"))
        assert len(lines) == 3, "".join(lines)
        return {line.split()[0]: line.split()[1:] for line in lines}


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=tmp_path_factory.mktemp("planner"), env=environment,
    ) as process:  # fmt: skip
        yield process


@pytest.fixture(scope="module")
def unedited(planner: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A copy that is not edited, with all its modules compiled by the first process that uses it."""
    return Copy(planner, tmp_path_factory.mktemp("before"), ROOT, "__pycache__")


@pytest.fixture(scope="module")
def before(unedited: Copy) -> dict[str, list[str]]:
    return unedited.identities()


@pytest.fixture
def copy(tmp_path: Path, unedited: Copy, before: dict[str, list[str]]) -> Copy:
    """A copy in which only edited modules are compiled again: Python sees that they are newer than what it compiled."""
    return Copy(unedited.planner, tmp_path, unedited.folder / "fedrepro")


def comment(copy: Copy) -> None:
    copy.edit("FedMGS", "            m = P if active", "            # everybody\n            m = P if active")


def docstring(copy: Copy) -> None:
    copy.edit("FedMGS", '"""Parameters of FedMGS.', '"""All parameters of FedMGS.')


def constant_docstring(copy: Copy) -> None:
    copy.edit("descend_H", '"""HH and XH are recomputed', '"""Both are formed afresh')


def annotation(copy: Copy) -> None:
    copy.edit("lambda_max", "def lambda_max(A: np.ndarray) -> float:", "def lambda_max(A: object) -> 'float':")


def local_annotation(copy: Copy) -> None:
    copy.edit("h_step", "    c = 0.5 * gamma", "    c: float = 0.5 * gamma")


def error_text(copy: Copy) -> None:
    copy.edit("FedMGS", "FedMGS draws without replacement", "no client is drawn twice")


def parameter_check(copy: Copy) -> None:
    copy.edit("FedMGS", "gamma1: Annotated[float, Number(least=1.0)]", "gamma1: Annotated[float, Number(least=0.5)]")


def format_(copy: Copy) -> None:
    copy.edit(
        "lambda_max", "return float(np.linalg.eigvalsh(A)[-1]) if", "return (float(np.linalg.eigvalsh(A)[-1])) if"
    )


def move_module(copy: Copy) -> None:
    module = module_of("descend_H")
    old = ".".join(("fedrepro", *module.with_suffix("").parts))
    copy.path(module).rename(copy.folder / "fedrepro" / "elsewhere.py")
    copy.everywhere(rf"from {re.escape(old)} import", "from fedrepro.elsewhere import")
    package, _, name = old.rpartition(".")
    copy.everywhere(rf"from {re.escape(package)} import {name}\b", f"from fedrepro import elsewhere as {name}")


def split_module(copy: Copy) -> None:
    module = copy.path(module_of("lambda_max"))
    text = module.read_text()
    start, stop = text.index("def lambda_max"), text.index("def h_step")
    (copy.folder / "fedrepro" / "elsewhere.py").write_text("import numpy as np\n\n\n" + text[start:stop])
    copy.write(module, text[:start] + "from fedrepro.elsewhere import lambda_max\n\n\n" + text[stop:])


def rename_function(copy: Copy) -> None:
    copy.everywhere(r"\blambda_max\b", "largest_eigenvalue")


def import_alias(copy: Copy) -> None:
    path = copy.path(module_of("descend_H"))
    copy.write(path, path.read_text().replace("import numpy as np", "import numpy as xp").replace("np.", "xp."))


def local_name(copy: Copy) -> None:
    path = copy.path(module_of("Clock"))
    text = path.read_text()
    assert "others = spent" in text
    copy.write(path, text.replace("others", "rest"))


def error_class(copy: Copy) -> None:
    copy.everywhere(r"\bParameterError\b", "BadParameter")


def protocol_class(copy: Copy) -> None:
    copy.everywhere(r"\bMethod\b", "FederatedMethod")


def metadata_of_a_field(copy: Copy) -> None:
    copy.edit("FedMGS", "= 1.002", '= field(default=1.002, metadata={"symbol": "gamma_2"})')
    copy.edit("FedMGS", "from dataclasses import dataclass", "from dataclasses import dataclass, field")


def drawing(copy: Copy) -> None:
    copy.edit("NEUTRAL", "TITLE = 9.5", "TITLE = 9.6")


def other_method(copy: Copy) -> None:
    copy.edit(
        "FedPALM",
        "gamma: Annotated[float, Number(least=1.0)] = 1.02",
        "gamma: Annotated[float, Number(least=1.0)] = 1.03",
    )


@pytest.mark.parametrize(
    "edit",
    [comment, docstring, constant_docstring, annotation, local_annotation, error_text, parameter_check, format_,
     move_module, split_module, rename_function, import_alias, local_name, error_class, protocol_class,
     metadata_of_a_field, drawing, other_method],
)  # fmt: skip
def test_what_computes_nothing_leaves_every_run_its_name(
    copy: Copy, before: dict[str, list[str]], edit: Callable[[Copy], None]
) -> None:
    edit(copy)
    assert copy.identities() == before


ALL = {"fedmgs", "fedmavg", "kmeans++"}
CHANGES: dict[str, tuple[tuple[str, str, str], set[str]]] = {
    "an operator of the method": (("FedMGS", "d = 0.5 * self.gamma2", "d = 0.5 + self.gamma2"), {"fedmgs"}),
    "a default of the method": (("FedMGS", "= 1.002", "= 1.003"), {"fedmgs"}),
    "a constant it shares": (("descend_H", "_LOST_AT_MOST = 1e3", "_LOST_AT_MOST = 1e4"), {"fedmgs", "fedmavg"}),
    "a draw": (("drawn_once", "yield draw.permutation(P)[:m]", "yield draw.permutation(P)[-m:]"), {"fedmgs"}),
    "a measure": (("Clustering", "penalty = 0.5 * state.rho", "penalty = 1.5 * state.rho"), ALL),
    "a score": (("SCORES", "linear_sum_assignment(", "linear_sum_assignment(1 * "), ALL),
    "the data": (("SNR_TOLERANCE", "SNR_TOLERANCE = 1e-10", "SNR_TOLERANCE = 1e-9"), ALL),
    "the seeds": (("generator", 'f"{axis}|', 'f"{axis}:'), ALL),
    "the ledger": (("FULL_BITS", "FULL_BITS = 32", "FULL_BITS = 64"), ALL),
    "what is recorded": (("wanted", "round_ <= dense", "round_ < dense"), ALL),
    "what is stored": (("contents", '"seconds": record.seconds', '"seconds": 2 * record.seconds'), ALL),
    "what is written": (("contents", "repr(float(values[i]))", "repr(round(float(values[i]), 9))"), ALL),
    "what counts as diverged": (("decide_status", '"diverged" if why else "ok"', '"ok" if why else "diverged"'), ALL),
    "whether a method may end above its start": (
        ("FedMGS", "    m: Annotated[int | None", "    raises = True\n    m: Annotated[int | None"),
        {"fedmgs"},
    ),
    "how runs pass over data together": (("Lockstep", "self._turn += 1", "self._turn += 2"), {"fedmgs", "fedmavg"}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_computes_changes_the_names_of_the_runs_it_computes(
    copy: Copy, before: dict[str, list[str]], what: str
) -> None:
    edit, concerned = CHANGES[what]
    copy.edit(*edit)
    after = copy.identities()
    assert {name for name, runs in after.items() if runs != before[name]} == concerned
    for name in concerned:
        assert not set(after[name]) & set(before[name])


def test_arrays_of_a_problem_are_shared_until_what_makes_them_changes(copy: Copy, before: dict[str, list[str]]) -> None:
    def problems(found: dict[str, list[str]]) -> set[str]:
        return {run.split("/")[1] for runs in found.values() for run in runs}

    assert len(problems(before)) == 1  # one draw of data and clients for all trials and methods
    copy.edit("FedMGS", "d = 0.5 * self.gamma2", "d = 0.5 + self.gamma2")
    assert problems(copy.identities()) == problems(before)
    copy.edit("SNR_TOLERANCE", "SNR_TOLERANCE = 1e-10", "SNR_TOLERANCE = 1e-9")
    assert not problems(copy.identities()) & problems(before)


# -- the digest of definitions -----------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], str]]:
    """Writes the modules ``one`` and ``two`` of a small package; returns the digest of ``f`` in the first."""
    monkeypatch.setattr(code, "PACKAGE", "probe")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "probe").mkdir()
    (tmp_path / "probe" / "__init__.py").write_text("")

    def forget() -> None:
        for cached in (code._module, code._read, code._source, code._arguments):
            cached.cache_clear()
        code._DIGESTS.clear()
        sys.modules.pop("probe", None)

    def digest(text: str, beside: str = "") -> str:
        (tmp_path / "probe" / "one.py").write_text(text)
        (tmp_path / "probe" / "two.py").write_text(beside)
        forget()
        return code._digest(code.Definition("probe.one", "f"))

    yield digest
    forget()


def test_definitions_that_use_each_other_have_a_digest(package: Callable[..., str]) -> None:
    mutual = "def f(n):\n    return g(n) + 1\n\n\ndef g(n):\n    return f(n - 1) if n else {}\n"
    assert package(mutual.format(0)) == package("C = 7\n" + mutual.format(0))
    assert package(mutual.format(0)) != package(mutual.format(1))
    assert package("def f(n):\n    return n and f(n - 1)\n") != package("def f(n):\n    return n or f(n - 1)\n")


def test_a_local_name_hides_a_definition_and_an_import_inside_a_function_does_not(package: Callable[..., str]) -> None:
    local = "def f(g):\n    return [g for g in g]\n\n\ndef g():\n    return {}\n"
    assert package(local.format(1)) == package(local.format(2))
    beside = "def g():\n    return {}\n"
    lazy = "def f():\n    from probe.two import g\n    return g()\n"
    first = package(lazy, beside.format(1))
    assert first == package("from probe import two\n\n\ndef f():\n    return two.g()\n", beside.format(1))
    assert first == package("from probe.two import g as h\n\n\ndef f():\n    return h()\n", beside.format(1))
    assert first != package(lazy, beside.format(2))


def test_defaults_of_every_kind_and_fields_of_a_class_count(package: Callable[..., str]) -> None:
    shapes = [
        "def f(a, b=1): ...",
        "def f(a, b=2): ...",
        "def f(a, *, b=1): ...",
        "def f(a, *, b): ...",
        "class f:\n    a: int = 1",
        "class f:\n    a: int",
        "class f:\n    a = 1",
        "class f:\n    a: ClassVar[int] = 1",
        "f = 1",
        "f = 1.0",
        "f = True",
        "f = '1'",
        "f = {}\nf['a'] = 1",
        "f = {}\nf['a'] = 2",
        "f = {}\nf.update(a=1)",
    ]
    assert len({package(text) for text in shapes}) == len(shapes)


SAME = {
    "a local name": ("def f(a):\n    b = a + 1\n    return b", "def f(a):\n    c = a + 1\n    return c"),
    "an argument": ("def f(a):\n    return a", "def f(b):\n    return b"),
    "an argument of a lambda": ("f = [lambda a, b: a - b]", "f = [lambda c, d: c - d]"),
    "a name of a comprehension": ("def f(a):\n    return [b for b in a]", "def f(a):\n    return [c for c in a]"),
    "a walrus": (
        "def f(a):\n    return [b for c in a if (b := c)]",
        "def f(a):\n    return [d for c in a if (d := c)]",
    ),
    "a caught error": (
        "def f(a):\n    try:\n        a()\n    except OSError as b:\n        return b",
        "def f(a):\n    try:\n        a()\n    except OSError as c:\n        return c",
    ),
    "a pattern": (
        "def f(a):\n    match a:\n        case [b, *c]:\n            return b, c",
        "def f(a):\n    match a:\n        case [d, *e]:\n            return d, e",
    ),
    "an argument and those who name it": (
        "def g(a, b):\n    return a - b\n\n\ndef f(x):\n    return g(a=x, b=1)",
        "def g(c, d):\n    return c - d\n\n\ndef f(x):\n    return g(c=x, d=1)",
    ),
    "the order of plain keywords": ("def f(a):\n    return dict(x=1, y=a)", "def f(a):\n    return dict(y=a, x=1)"),
    "a nonlocal name": (
        "def f():\n    a = 1\n    def g():\n        nonlocal a\n        a = 2\n    return g",
        "def f():\n    b = 1\n    def h():\n        nonlocal b\n        b = 2\n    return h",
    ),
    "the error that is raised": ("def f(a):\n    raise ValueError(a)", "def f(a):\n    raise KeyError"),
    "metadata of a field": (
        "from dataclasses import field\nclass f:\n    a: int = field(metadata={1: 2})",
        "class f:\n    a: int",
    ),
}
"""Two ways to write one thing."""

OTHER = {
    "which argument is which": (
        "def g(a, b):\n    return a - b\n\n\ndef f(x):\n    return g(a=x, b=1)",
        "def g(b, a):\n    return b - a\n\n\ndef f(x):\n    return g(a=x, b=1)",
    ),
    "which argument is which, of a function that is handed on": (
        "def g(a, b):\n    return a - b\n\n\ndef f(h):\n    return h(g)",
        "def g(b, a):\n    return b - a\n\n\ndef f(h):\n    return h(g)",
    ),
    "which argument is which, of a method": (
        "class f:\n    def g(self, a, b):\n        return a - b",
        "class f:\n    def g(self, b, a):\n        return b - a",
    ),
    "which argument is which, of a function inside": (
        "def f():\n    def g(a, b):\n        return a - b\n    return g(a=1, b=2)",
        "def f():\n    def g(b, a):\n        return b - a\n    return g(a=1, b=2)",
    ),
    "what a comprehension goes through": (
        "def f(a, b):\n    return [a for a in a], b", "def f(a, b):\n    return [b for b in b], b"),
    "which local": ("def f(a, b):\n    return a", "def f(a, b):\n    return b"),
    "whose local": (
        "def f(a):\n    def g(b):\n        return a\n    return g",
        "def f(a):\n    def g(b):\n        return b\n    return g",
    ),
    "a member": ("class f:\n    a = 1\n    b = 2", "class f:\n    b = 1\n    a = 2"),
    "the order of keywords that are computed": (
        "def f(a):\n    return dict(x=a(), y=a())", "def f(a):\n    return dict(y=a(), x=a())"),
    "a keyword": ("def f(a):\n    return dict(x=1)", "def f(a):\n    return dict(y=1)"),
    "whether an error is raised": (
        "def f(a):\n    if a:\n        raise ValueError", "def f(a):\n    if a:\n        return 1"),
    "a field's default": (
        "from dataclasses import field\nclass f:\n    a: int = field(default=1, metadata={})",
        "class f:\n    a: int = 2",
    ),
    "what a __post_init__ sets": (
        "class f:\n    a: int\n    def __post_init__(self):\n        self.b = 1", "class f:\n    a: int"),
    "whether what is set above is set": (
        "class g:\n    def __post_init__(self):\n        self.b = 1\n\n\nclass f(g):\n    a: int",
        "class g:\n    def __post_init__(self):\n        self.b = 1\n\n\n"
        "class f(g):\n    a: int\n    def __post_init__(self):\n        if self.a:\n            raise ValueError",
    ),
}  # fmt: skip
"""Two things that differ in little."""


@pytest.mark.parametrize("what", SAME)
def test_names_that_no_caller_needs_do_not_count(package: Callable[..., str], what: str) -> None:
    first, second = SAME[what]
    assert package(first) == package(second)


@pytest.mark.parametrize("what", OTHER)
def test_what_a_name_refers_to_counts(package: Callable[..., str], what: str) -> None:
    first, second = OTHER[what]
    assert package(first) != package(second)


def test_a_check_of_parameters_may_be_a_base_class_s(package: Callable[..., str]) -> None:
    says = "IN_RUNS = 'says'\n\n\ndef whole(name, value): ...\n\n\nclass Method:\n    a = 1\n"
    checked = (
        "from probe.two import Method, whole\n\n\nclass f(Method):\n    m: int = 1\n\n"
        "    def __post_init__(self):\n        whole('m', self.m)\n"
        "        if self.m > 3:\n            raise ValueError\n"
    )
    plain = "from probe.two import Method\n\n\nclass f(Method):\n    m: int = 1\n"
    sets = plain + "\n    def __post_init__(self):\n        {}object.__setattr__(self, 'm', 1)\n"
    assert package(checked, says) == package(plain, says)
    assert package(sets.format(""), says) == package(sets.format("super().__post_init__()\n        "), says)
    assert package(sets.format(""), says) != package(plain, says)


def test_only_what_a_post_init_sets_counts(package: Callable[..., str]) -> None:
    says = "IN_RUNS = 'says'\n\n\ndef whole(name, value): ...\n"
    head = "from probe.two import whole\n\n\ndef checked(x):\n    if x > 3:\n        raise ValueError\n\n\n"
    head += "def sets(x):\n    x.m = 2\n\n\nclass f:\n    m: int = 1\n\n    def __post_init__(self):\n        {}"
    plain = package(head.format("object.__setattr__(self, 'm', 2)"), says)
    for checks in ("whole('m', self.m)", "checked(self.m)", "if self.m > 9:\n            raise ValueError"):
        assert package(head.format(f"{checks}\n        object.__setattr__(self, 'm', 2)"), says) == plain
    assert package(head.format("sets(self)\n        object.__setattr__(self, 'm', 2)"), says) != plain
    assert package(head.format("self.other()\n        object.__setattr__(self, 'm', 2)"), says) != plain
    below = "\n\n\nclass g(f):\n    pass\n"
    again = (
        "\n\n\nclass g(f):\n    def __post_init__(self):\n        super().__post_init__()\n        checked(self.m)\n"
    )
    over = "\n\n\nclass g(f):\n    def __post_init__(self):\n        checked(self.m)\n"
    swapped = head.replace("class f", "class base").format("object.__setattr__(self, 'm', 2)")
    digests = [package(swapped + text.replace("class g(f)", "class f(base)"), says) for text in (below, again, over)]
    assert digests[0] == digests[1] != digests[2]


def test_flags_of_xla_belong_to_what_networks_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    networks = registry.methods()["ditto"].cls
    monkeypatch.setenv("XLA_FLAGS", cpu.XLA)
    plain = code.libraries([networks])
    assert {"jax", "jaxlib", "optax"} <= set(plain)
    assert "XLA_FLAGS" not in plain
    monkeypatch.setenv("XLA_FLAGS", " ".join((cpu.XLA, *backend.FLAGS)))
    assert code.libraries([networks]) == plain  # loading JAX sets flags of its own
    monkeypatch.setenv("XLA_FLAGS", f"--xla_cpu_enable_fast_math=true {cpu.XLA}")
    assert code.libraries([networks]) == {**plain, "XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    assert "XLA_FLAGS" not in code.libraries([registry.methods()["fedmgs"].cls])


def test_variables_that_set_jax_belong_to_what_networks_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax")
    networks = registry.methods()["ditto"].cls
    for name in [name for name in os.environ if name.startswith("JAX_")]:
        monkeypatch.delenv(name)
    plain = code.libraries([networks])
    assert not [name for name in plain if name.startswith("JAX")]
    for name in ("JAX_COMPILATION_CACHE_DIR", "JAX_LOGGING_LEVEL", "JAX_TRACEBACK_FILTERING"):
        monkeypatch.setenv(name, "x")
    assert code.libraries([networks]) == plain
    monkeypatch.setenv("JAX_DEFAULT_MATMUL_PRECISION", "bfloat16")
    assert code.libraries([networks]) == {**plain, "JAX_DEFAULT_MATMUL_PRECISION": "bfloat16"}
    assert code.libraries([registry.methods()["fedmgs"].cls]).keys() == {"numpy"}


def test_what_importing_a_module_does_counts(package: Callable[..., str]) -> None:
    quiet = "import numpy as np\n\n\ndef f(x):\n    return x\n"
    assert package(quiet) != package(quiet + "\n\nnp.seterr(all='ignore')\n")


def test_every_registered_thing_has_a_digest_and_reaches_no_module_that_only_draws_or_reads_specs() -> None:
    things = [entry.cls for entry in registry.methods().values()]
    things += [entry.cls for entry in registry.datasets().values()]
    assert len({code.digest([definition]) for definition in things}) > 30
    reached = {definition.module for definition in code.reached_by(things)}
    outside = ("plotting", "report", "cli", "spec", "claims", "results")
    assert not [name for name in reached if name.split(".")[1] in outside]
    assert code.libraries([registry.methods()["fedmgs"].cls]).keys() == {"numpy"}
    assert "numba" in code.libraries([registry.methods()["fedmc-admm"].cls])
