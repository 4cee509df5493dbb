"""The command ``duel``."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import math
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import yaml

from fedrepro import own_modules, registry
from fedrepro.cli.options import Whole, in_results, results_option, set_option, stand_in_option
from fedrepro.errors import UserError, counted, nearest
from fedrepro.files import atomically
from fedrepro.registry import MethodEntry, ProblemEntry
from fedrepro.spec import nodes
from fedrepro.spec.nodes import SpecErrors

FILES = {
    "samples": "file",
    "ratings": "ratings-file",
    "split-ratings": "ratings-file",
    "views": "views-file",
    "images": "images-file",
    "entries": "entries-file",
    "regression": "regression-file",
}
"""The dataset that reads a user's file, by the kind of data."""

PARTITIONS = {"samples": "uniform", "ratings": "users", "split-ratings": "users", "images": "iid_images"}
"""The usual partition, by the kind of data; data of other kinds name their clients."""

LABELS = ("accuracy", "nmi", "ami", "ari", "purity")
"""Metrics that compare clusters with labels."""

HELD_BACK = ("mse", "rmse")
"""Metrics on held-back data. The first one that a problem has decides, unless no data are held back."""

NAMED = ("problem", "dataset", "partition")
"""Keys of the spec whose value can be a name alone."""


@dataclass(frozen=True)
class Side:
    """One of the two methods. file : the user's file that defines it, '' for a registered method."""

    entry: MethodEntry
    file: str = ""
    label: str = ""


def complete_method(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the methods that start with ``incomplete``, for shell completion."""
    return sorted(name for name in registry.methods() if name.startswith(incomplete))


@click.command()
@click.argument("a", metavar="A", shell_complete=complete_method)
@click.argument("b", metavar="B", shell_complete=complete_method)
@click.option(
    "--data",
    "given",
    required=True,
    multiple=True,
    metavar="DATASET|FILE",
    help="A dataset, or a file of your own (a CSV with one sample per row); repeat it for files with one view each.",
)
@click.option(
    "--partition",
    metavar="PARTITION",
    help="Distribution to clients (default: the clients that your file names, else the usual one of the data).",
)
@click.option("--clients", type=Whole(min=1), help="Number of clients to draw, also if your file names its own.  [10]")
@click.option("--rounds", type=Whole(min=1), default=50, show_default=True, help="Number of rounds.")
@click.option("--trials", type=Whole(min=1), default=5, show_default=True, help="Number of paired trials.")
@click.option(
    "--metric",
    help="The metric that decides (default: the error on held-back data, `mse` or `rmse`, if the problem has it, else "
    "its first metric: `objective` for clustering, test accuracy for images).",
)
@click.option("--jobs", "-j", type=Whole(min=1), help="Parallel workers (default: all cores).")
@click.option("--fresh", is_flag=True, help="Delete the finished runs and compute them again.")
@set_option
@stand_in_option
@results_option
@click.option(
    "--plots",
    "plots_dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the pictures (default: plots of the project).",
)
@click.pass_context
def duel(
    ctx: click.Context,
    a: str,
    b: str,
    given: tuple[str, ...],
    partition: str | None,
    clients: int | None,
    rounds: int,
    trials: int,
    metric: str | None,
    jobs: int | None,
    fresh: bool,
    sets: tuple[str, ...],
    stand_in: bool,
    results_dir: Path,
    plots_dir: Path | None,
) -> None:
    """Compare two methods on a dataset: which one ends better, by how much, and at which cost.

    A and B are registered methods, or FILE.py:CLASS for a method of your own. Both have the same data, initial points
    and client draws in each trial. The command writes a spec to the current folder, runs it, draws it, and prints the
    end values and the paired 95 % interval of the difference. Edit the spec for more curves or other parameters.

    \b
    Examples:
      fedrepro duel fedmgs fedmavg --data digits
      fedrepro duel my_method.py:FedLloyd fedmgs --data digits --clients 20
      fedrepro duel fedmgs fedpalm --data my.npz --set problem.K=5 --set dataset.labels=y
      fedrepro duel perfedsi ditto --data photos --set problem.name=personal-side
    """
    from fedrepro.cli.compute import run
    from fedrepro.cli.report import show

    changes = [(path, _named(path, node.plain())) for path, node in map(nodes.setting, sets)]
    set_values = {".".join(path): value for path, value in changes}
    data = given[0]
    sides = _sides(a, b, data, set_values)
    problem = _problem(sides[0].entry, data, set_values)
    _require_libraries(sides, problem)
    metric = _metric(problem, metric, set_values)
    spec = _spec(sides, problem, metric, given, partition, clients or 10, {"trials": trials, "rounds": rounds})
    if clients is not None and "P" not in spec.get("partition", {}):
        by = f"the partition {partition}" if partition else f"the data of {problem.name}"
        raise UserError(f"--clients {clients}: the number of clients follows from {by}; leave the option out")
    if partition is None and clients is None and _names_clients(spec, changes):
        spec["partition"] = {"name": "given"}
    for path, value in sorted(changes, key=lambda change: change[0] not in [[key] for key in NAMED]):
        _put(spec, path, value)
    for claim in spec["claims"][:1]:
        claim["id"] = f"{spec['figure']}.duel"
    _require_labels(spec["dataset"], problem, metric)
    for line in (*_columns(spec["dataset"]), *_fit(spec)):
        click.echo(line)
    plots = {} if plots_dir is None else {"plots_dir": plots_dir}
    with _written(spec) as file:
        ctx.invoke(
            run,
            specs=(str(file),),
            only=None,
            jobs=jobs,
            draw=True,
            fresh=fresh,
            stand_in=stand_in,
            results_dir=results_dir,
            **plots,
        )
    with np.errstate(over="ignore", invalid="ignore"):  # a method may diverge
        ctx.invoke(show, figure=str(file), results_dir=results_dir)
        for label in _silent(file, results_dir, sides):
            click.echo(f"note: {label} counted no message in its ledger, so its cost is unknown (docs/own-method.md)")
        falling = problem.metrics[metric].better == "lower"
        risen = _risen(file, results_dir, sides, metric) if falling else {}
        for label, (start, end) in risen.items():
            click.echo(
                f"note: {label} diverges: its {metric} is {start:.3g} at the start and {end:.3g} at the end; a smaller "
                "step, or features of similar size, may help"
            )
        click.echo(f"spec: {file} (edit it for more curves or other parameters)")
        if len(risen) < 2:
            click.echo(_outcome(file, results_dir, sides, metric))


def _require_labels(dataset: dict[str, Any], problem: ProblemEntry, metric: str) -> None:
    """Raise UserError if the user's file has no labels, and a metric that is recorded compares with them."""
    if "labels" in dataset:
        return
    if metric in LABELS and dataset.get("name") == FILES["samples"]:
        raise UserError(f"--metric {metric}: name the column with the labels, with --set dataset.labels=COLUMN")
    compared = [name for name in (metric, *problem.default_metrics) if name in LABELS]
    if compared and dataset.get("name") == FILES["views"]:
        raise UserError(
            f"{problem.name}: its {compared[0]} compares with labels; name the array or the file that contains them, "
            "with --set dataset.labels=NAME"
        )


def _named(path: list[str], value: Any) -> Any:
    """Return the name of a column for its number: without a header, columns are called 0, 1, ..."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number and path[0] == "dataset" and path[-1] in ("labels", "client") else value


def _sides(a: str, b: str, data: str, changes: dict[str, Any]) -> tuple[Side, Side]:
    """Return both methods. Raises UserError if there is none with a name, or they solve different problems."""
    registered = [registry.methods()[name].problem for name in (a, b) if name in registry.methods()]
    problem = registered[0] if registered else _problem_of_own(a, b, data, changes)
    sides = _side(a, problem), _side(b, problem)
    if sides[0].entry.problem != sides[1].entry.problem:
        solved = " and ".join(f"{side.entry.name} solves {side.entry.problem}" for side in sides)
        raise UserError(f"{solved}; name two methods of one problem")
    if sides[0].entry.name == sides[1].entry.name:
        raise UserError(f"{a} and {b} are the same method; write a spec to compare its parameters")
    labels = [side.entry.label for side in sides]
    if labels[0] == labels[1]:
        labels = [f"{side.entry.label} ({side.entry.name})" for side in sides]
    first, second = (dataclasses.replace(side, label=label) for side, label in zip(sides, labels, strict=True))
    return first, second


def _problem_of_own(a: str, b: str, data: str, changes: dict[str, Any]) -> str:
    """Return the problem that two methods of the user's own solve: the one that --set names, or else that of the data.

    Raises UserError if none is named, and several problems or none have such data.
    """
    problems = registry.problems()
    if (named := changes.get("problem.name", changes.get("problem"))) in problems:
        return str(named)
    kind = registry.datasets()[data].kind if data in registry.datasets() else ""
    able = [name for name, problem in problems.items() if problem.data_kind == kind]
    if len(able) != 1:
        for name in (a, b):
            if not _is_own(name) and nearest(name, registry.methods()):
                raise _unregistered(name)
        raise UserError(
            f"{a} and {b}: neither is a registered method; name the problem that they solve with --set "
            f"problem.name=PROBLEM (problems: {', '.join(able or problems)})"
        )
    return able[0]


def _is_own(name: str) -> bool:
    """Return whether a name that is not registered is one of the user's own: FILE.py, FILE.py:CLASS or installed."""
    return name.endswith(".py") or name.rpartition(":")[0].endswith(".py") or name in own_modules.installed()


def _unregistered(name: str) -> UserError:
    return UserError(f"{name}: not a registered method{nearest(name, registry.methods())} (your own: FILE.py:CLASS)")


def _side(name: str, problem: str) -> Side:
    file, colon, wanted = name.rpartition(":")
    if name in registry.methods():
        return Side(registry.methods()[name])
    if name in own_modules.installed():
        own_modules.register_installed(name, problem)
        return Side(registry.methods()[name])
    if not _is_own(name):
        raise _unregistered(name)
    file = file if colon else name
    defined = own_modules.register(own_modules.read(file, Path.cwd(), problem))
    chosen = [method for method in defined if not colon or method == wanted.lower()]
    if len(chosen) != 1:
        classes = [registry.methods()[method].cls.__name__ for method in defined]
        near = nearest(wanted, classes) if colon else ""
        raise UserError(f"{file}: defines {', '.join(classes)}{near or f'; name one of them as {file}:CLASS'}")
    return Side(registry.methods()[chosen[0]], file)


def _problem(method: MethodEntry, data: str, changes: dict[str, Any]) -> ProblemEntry:
    """Return the problem to compare on: the one that --set names, or else the first of the method's for such data."""
    problems = registry.problems()
    if (named := changes.get("problem.name", changes.get("problem"))) in problems:
        return problems[named]
    own = problems[method.problem]
    kinds = {registry.datasets()[data].kind} if data in registry.datasets() else set(FILES)
    able = [own, *(problem for problem in problems.values() if registry.runs_on(method, problem))]
    return next((problem for problem in able if problem.data_kind in kinds), own)


def _require_libraries(sides: tuple[Side, Side], problem: ProblemEntry) -> None:
    """Raise UserError if a method or the problem needs a library that is not installed."""
    from fedrepro.runs.identity.plan import lacks_library

    needed = {side.entry.name: side.entry.cls for side in sides} | {problem.name: problem.cls}
    for name, cls in needed.items():
        if lacking := lacks_library([cls]):
            raise UserError(f"{name}: {lacking}")


def _metric(problem: ProblemEntry, metric: str | None, changes: dict[str, Any]) -> str:
    if metric is not None and metric not in problem.metrics:
        raise UserError(
            f"--metric {metric}: not a metric of {problem.name}{nearest(metric, problem.metrics)} "
            f"(metrics: {', '.join(problem.metrics)})"
        )
    none = changes.get("test", changes.get("problem.test")) == 0
    held_back = (name for name in HELD_BACK if name in problem.metrics and not none)
    return metric or next(held_back, problem.default_metrics[0])


def _spec(
    sides: tuple[Side, Side],
    problem: ProblemEntry,
    metric: str,
    given: tuple[str, ...],
    partition: str | None,
    clients: int,
    sizes: dict[str, int],
) -> dict[str, Any]:
    """Return the spec of the comparison."""
    (a, b), kind = sides, problem.data_kind
    dataset = _dataset(given, problem)
    spread = partition or PARTITIONS.get(kind)
    files = dict.fromkeys(side.file for side in sides if side.file)
    if len(files) > 1:
        raise UserError("put both methods into one file")
    names = [side.entry.name for side in sides]
    better, sign = ("lower", "<") if problem.metrics[metric].better == "lower" else ("higher", ">")
    spec: dict[str, Any] = {"paper": "mine", "figure": _slug("-".join([*names, *(Path(file).stem for file in given)]))}
    spec |= {"title": f"{a.label} and {b.label} on {', '.join(Path(file).name for file in given)}"}
    spec |= {"import": next(iter(files))} if files else {}
    spec |= {"problem": {"name": problem.name}, **sizes, "dataset": dataset}
    if spread is not None:
        has_clients = spread in registry.partitions() and "P" in registry.partitions()[spread].parameters()
        spec["partition"] = {"name": spread, "P": clients} if has_clients else {"name": spread}
    panels: dict[str, Any] = {"a": {"y": metric, "curves": [{"algorithm": name} for name in names]}}
    if not any(side.entry.cls.silent or side.entry.cls.one_shot for side in sides):
        panels["b"] = {"like": "a", "x": "uplink_scalars"}
    claim = {
        "id": "duel",
        "says": f"{a.label} ends {better} than {b.label}",
        "where": "ours",
    }
    check = f"y(at='end', algorithm='{names[0]}') {sign} y(at='end', algorithm='{names[1]}')"
    return spec | {"panels": panels, "claims": [claim | {"panel": "a", "check": check}]}


def _dataset(given: tuple[str, ...], problem: ProblemEntry) -> dict[str, Any]:
    """Return the spec's dataset. given : the name of one, the user's file, or several files with one view each."""
    kind, data = problem.data_kind, given[0]
    if len(given) == 1 and data in registry.datasets():
        return {"name": data}
    for file in given:
        if file in registry.datasets():
            raise UserError(f"--data {file}: is a dataset; name it alone, or only files with one view each")
        if not Path(file).exists():
            near = nearest(file, [name for name in registry.datasets() if name not in FILES.values()])
            raise UserError(f"--data {file}: neither a dataset nor a file{near}")
    if kind not in FILES:
        raise UserError(f"--data {data}: the problem {problem.name} reads no files of your own")
    if len(given) > 1 and kind != "views":
        raise UserError(f"--data {' --data '.join(given)}: name one; only views can be in several files")
    dataset: dict[str, Any] = {"name": FILES[kind], "path": data if len(given) == 1 else list(given)}
    if kind == "samples" and Path(data).suffix == ".csv":
        dataset["orientation"] = "rows"  # as nearly every CSV is written
    return dataset


def _slug(name: str) -> str:
    """Return a name with only the characters that the name of a figure can have."""
    for character, word in {"+": "plus", "|": "bar"}.items():
        name = name.replace(character, word)
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", plain).strip("-")[:100]


def _names_clients(spec: dict[str, Any], changes: list[tuple[list[str], Any]]) -> bool:
    """Return whether the spec's dataset is a file of the user that names its clients, with the changes of ``--set``.

    Data that cannot be read name none here; the error is reported when the spec is run.
    """
    parameters = dict(spec["dataset"])
    if "path" not in parameters or "partition" not in spec or any(path == ["dataset"] for path, _ in changes):
        return False
    for path, value in changes:
        if path[:-1] == ["dataset"] or (len(path) == 1 and spec["dataset"] in _holders(spec, path[0])):
            parameters[path[-1]] = value
    return "P" in _shape(parameters)


def _shape(dataset: dict[str, Any]) -> dict[str, Any]:
    """Return the sizes of the spec's dataset; none for one that cannot be read, whose error follows later."""
    parameters = dict(dataset)
    entry = registry.datasets().get(parameters.pop("name", ""))
    if entry is None or not set(parameters) <= set(entry.parameters()):
        return {}
    try:
        return dict(entry.make(**parameters).shape())
    except UserError:
        return {}


def _fit(spec: dict[str, Any]) -> Iterator[str]:
    """Reduce the default K and the default minibatches b to what the views allow; yield a note for each number."""
    shape, set_ = _shape(spec["dataset"]), spec["problem"]
    problem = registry.problems().get(set_.get("name"))
    if problem is None or problem.data_kind != "views":
        return
    K, rank = problem.parameters["K"], shape.get("rank")
    if "K" not in set_ and rank is not None and rank < K:
        set_["K"] = rank
        yield f"note: K = {rank} instead of {K}: a view has only {counted(rank, 'row or column', 'rows or columns')}"
    held_out, J = set_.get("test") or 0, shape.get("J")
    if J is None or not isinstance(held_out, int):
        return
    reduced = {}
    for curve in spec["panels"]["a"]["curves"]:
        b = registry.methods()[curve["algorithm"]].parameters().get("b")
        if "b" not in curve and b is not None and b > J - held_out > 0:
            curve["b"] = J - held_out
            reduced[b] = f"note: b = {J - held_out} instead of {b}: the views have only {counted(J - held_out, 'row')}"
    yield from reduced.values()


def _columns(dataset: dict[str, Any]) -> Iterator[str]:
    """Yield what the columns of a CSV of samples are read as, and doubts about them; nothing for other data."""
    from fedrepro.data.formats.named_arrays import named_arrays

    file = Path(str(dataset.get("path", "")))
    rows = dataset["name"] == FILES["samples"] and dataset.get("orientation") == "rows"
    if not rows or file.suffix != ".csv":
        return
    arrays = named_arrays(file)
    if any(name.isdigit() for name in arrays):  # without a header, columns have numbers
        if not {"labels", "client"} & dataset.keys():
            yield (
                f"{file} has no header, so its {len(arrays)} columns are called 0 to {len(arrays) - 1}, and all are "
                "features; name a column with labels or clients with --set dataset.labels=NUMBER or --set "
                "dataset.client=NUMBER"
            )
        return
    others = {role: dataset[role] for role in ("labels", "client") if dataset.get(role) in arrays}
    features = [name for name in arrays if name not in others.values()]
    named = "; ".join(f"{'clients' if role == 'client' else role}: {name}" for role, name in others.items())
    yield f"features: {len(features)} columns of {file} ({', '.join(features)})" + (f"; {named}" if named else "")
    if not others:
        yield (
            "If a column contains labels or clients, say so with --set dataset.labels=COLUMN or --set "
            "dataset.client=COLUMN"
        )
    for name in features:
        if _counts_rows(arrays[name]):
            yield f"note: the column '{name}' only counts the rows; if it is no feature, remove it from the file"
    if alike := _alike(arrays.get(others.get("labels", ""))):
        yield f"note: the labels {alike} differ only in capitals or blanks, and count as different classes"


def _counts_rows(column: Any) -> bool:
    """Return whether a column contains the numbers of the rows, from any start."""
    values = np.asarray(column)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return False
    return values.dtype.kind in "iuf" and values.size > 2 and bool(np.all(np.diff(values.astype(float)) == 1.0))


def _alike(labels: Any) -> str:
    """Return two labels that differ only in capitals or blanks, '' if there are none."""
    first: dict[str, str] = {}
    for text in dict.fromkeys(map(str, [] if labels is None else np.asarray(labels).tolist())):
        other = first.setdefault(text.strip().casefold(), text)
        if other != text:
            return f"'{other}' and '{text}'"
    return ""


def _put(spec: dict[str, Any], path: list[str], value: Any) -> None:
    """Set a key of the spec by its path; a parameter of the methods, the problem or the data by its name alone."""
    if len(path) == 1 and path[0] not in spec:
        holders = _holders(spec, path[0])
        if not holders:
            raise UserError(
                f"--set {path[0]}: neither a key of the spec nor a parameter of the methods, the problem or the data"
            )
        for holder in holders:
            holder[path[0]] = value
        return
    if len(path) == 1 and path[0] in NAMED and not isinstance(value, dict):
        value = {"name": value}
    for key in path[:-1]:
        spec = spec.setdefault(key, {})
        if not isinstance(spec, dict):
            raise UserError(f"--set {'.'.join(path)}: '{key}' has no keys below it")
    spec[path[-1]] = value


def _holders(spec: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the mappings of the spec that a parameter belongs to: the curves, else the problem, else the data."""
    curves = spec["panels"]["a"]["curves"]
    if found := [curve for curve in curves if name in registry.methods()[curve["algorithm"]].parameters()]:
        return found
    problem = registry.problems().get(spec["problem"].get("name"))
    if problem is not None and name in problem.parameters:
        return [spec["problem"]]
    tables: dict[str, Any] = {"dataset": registry.datasets(), "partition": registry.partitions()}
    data = [(spec[key], table.get(spec[key].get("name"))) for key, table in tables.items() if key in spec]
    return [holder for holder, entry in data if entry is not None and name in entry.parameters()]


@contextlib.contextmanager
def _written(spec: dict[str, Any]) -> Iterator[Path]:
    """Write the spec to the current folder; after an error of the user, the folder is as it was before."""
    before = Path(f"{spec['figure']}.yaml")
    former = before.read_bytes() if before.exists() else None
    file = _write(spec)
    try:
        yield file
    except UserError as error:
        if former is not None:
            atomically(file, former)
            raise
        file.unlink()
        more = " --set KEY=VALUE changes it, for instance --set problem.K=3" if _about_values(error, spec) else ""
        raise UserError(f"{error}\nThe spec {file} was not kept.{more}") from error


def _about_values(error: UserError, spec: dict[str, Any]) -> bool:
    """Return whether another value in the spec can mend an error: not if a file, a dataset or a library is at fault."""
    if not isinstance(error, SpecErrors):
        return False
    dataset = registry.datasets().get(str(spec["dataset"].get("name")))
    keys = [f"{key}:" for key in dataset.parameters() if key != "path"] if dataset is not None else []
    for message in error.messages:
        said, _, _ = message.partition("  (in: ")
        of_file = f"the dataset '{spec['dataset'].get('name')}': path" in said
        if not of_file or any(key in said for key in keys):  # "name it with labels:"
            return True
    return False


def _write(spec: dict[str, Any]) -> Path:
    """Write the spec. Raises UserError instead of replacing a file that was edited, or one about other data."""
    file = Path(f"{spec['figure']}.yaml")
    command = shlex.join(["fedrepro", *sys.argv[1:]]) if sys.argv[1:2] == ["duel"] else "fedrepro duel"
    body = yaml.safe_dump(spec, sort_keys=False, width=120, allow_unicode=True, default_flow_style=None)
    marks = ("# Written by `", f"# {_short_hash(body)}\n")
    if file.exists():
        present = file.read_text(encoding="utf-8")
        first, second, rest = [*present.split("\n", 2), "", ""][:3]
        if not first.startswith(marks[0]) or second != f"# {_short_hash(rest)}":
            raise UserError(
                f"{file}: was written or edited by hand, so it is not replaced; `fedrepro run {file}` computes it, or "
                "move it away"
            )
        former = yaml.safe_load(rest)["dataset"].get("path")
        if former is not None and "path" in spec["dataset"] and not _same(former, spec["dataset"]["path"]):
            raise UserError(
                f"{file}: is about {_listed(former)}, and so are its results; move it away, or rename a data file"
            )
    atomically(file, f"{marks[0]}{command}`; edit it, and use `fedrepro run {file}`.\n{marks[1]}{body}".encode())
    return file


def _listed(path: str | list[str]) -> str:
    return path if isinstance(path, str) else ", ".join(path)


def _same(first: str | list[str], second: str | list[str]) -> bool:
    """Return whether two paths of a dataset, each of one file or of several, are the same."""
    former, present = ([path] if isinstance(path, str) else path for path in (first, second))
    return [Path(path).resolve() for path in former] == [Path(path).resolve() for path in present]


def _short_hash(text: str) -> str:
    """Return a short hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _results(file: Path, results_dir: Path) -> Any:
    """Return the tidy frame of the spec's results, None if there are none."""
    from fedrepro.results.read import frame, results_file, stem
    from fedrepro.spec.read import load

    table = results_file(stem(results_dir, load(file, "quick")))
    return None if table is None else frame(table)


def _silent(file: Path, results_dir: Path, sides: tuple[Side, Side]) -> list[str]:
    """Return the methods of the user that send messages, as they say, and counted none."""
    rows = _results(file, results_dir)
    if rows is None:
        return []
    sent = rows.groupby("algorithm", observed=True)["uplink_scalars"].max()
    return [side.label for side in sides if side.file and not side.entry.cls.silent and sent.get(side.entry.name) == 0]


MUCH = 10.0
"""A method whose error ends above this multiple of its start diverges, even if no value is infinite."""


ROUNDING = 1e-9
"""Values that differ by at most this share of them differ by rounding, also after many rounds."""


def _risen(file: Path, results_dir: Path, sides: tuple[Side, Side], metric: str) -> dict[str, tuple[float, float]]:
    """Return the methods that end far above their start in a metric, with the means of both over trials."""
    rows = _results(file, results_dir)
    if rows is None:
        return {}
    rows = rows[rows["metric"] == metric]
    found = {}
    for side in sides:
        means = rows[rows["algorithm"] == side.entry.name].groupby("round")["value"].mean()
        if len(means) > 1 and math.isfinite(means.iloc[-1]) and means.iloc[-1] > MUCH * abs(means.iloc[0]):
            found[side.label] = float(means.iloc[0]), float(means.iloc[-1])
    return found


def _same_runs(file: Path, results_dir: Path, metric: str) -> bool:
    """Return whether the trials of each method differ in a metric by rounding at most, in every round.

    Their spread is that of the rounding, and says nothing about other data or initial points.
    """
    rows = _results(file, results_dir)
    if rows is None:
        return False
    values = rows[rows["metric"] == metric].groupby(["algorithm", "round"], observed=True)["value"]
    low, high = values.min(), values.max()
    largest = np.maximum(low.abs(), high.abs())
    return bool((high - low <= ROUNDING * largest).all())


def _outcome(file: Path, results_dir: Path, sides: tuple[Side, Side], metric: str) -> str:
    """Return in one sentence which method ends better, with the paired interval of the difference."""
    from fedrepro.report import gather_contents
    from fedrepro.spec.find import Selected

    (row,) = gather_contents.verdicts(Selected(file), "quick", results_dir).rows
    a, b = (side.label for side in sides)
    if not row.margins:
        return f"{a} and {b} cannot be compared: {row.why}"
    margin = row.margins[0]
    value, low, high = margin.value, margin.low, margin.high  # positive if A is better
    if value == low == high == 0 or (value == 0 and row.trials == 1):
        return f"{a} and {b} end with the same {metric} in every trial"
    better = row.claim.says.removeprefix(f"{a} ends ").removesuffix(f" than {b}")
    if row.verdict == "fails" or value < 0:
        a, b, value, low, high = b, a, -value, -high, -low
    decided = row.verdict in ("holds", "fails")
    why = f"`fedrepro failures {file}{in_results(results_dir)}` prints why"
    if math.isnan(value):
        return f"{a} and {b} both diverge; {why}"
    if math.isinf(value):
        return f"{a} ends {better} than {b}, which diverges; {why}"
    same_run = row.trials > 1 and _same_runs(file, results_dir, metric)
    if same_run and not decided:  # the difference is one of rounding, too
        return f"{a} and {b} end with the same {metric} in every trial"
    outcome = f"{a} ends {better} than {b}" if decided else f"within noise: {a} is ahead of {b}"
    if row.trials == 1:
        return f"{outcome}: by {value:.3g} in {metric} (one trial, so without an interval)"
    if same_run:
        same = f"all {row.trials} trials are the same run, so without an interval"
        return f"{outcome}: by {value:.3g} in {metric} ({same})"
    return f"{outcome}: by {value:.3g} [{low:.3g}, {high:.3g}] in {metric} (95 %, {row.trials} paired trials)"
