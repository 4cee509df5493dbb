"""The grammar of the checks of claims: parsing, and errors that are reported before anything runs.

A check compares numbers read from the curves of a panel, averaged over trials::

    y(at=20, Q1=10) < y(at=20, Q1=1)
    y(at=[100, 200, 500], algorithm='fedcavg') > y(at=[100, 200, 500], algorithm='fedcgds', m=100)
    reach(0.46, axis='uplink_scalars', m=10) < reach(0.46, axis='uplink_scalars', m=100)

``FORMS`` explains what each function reads. Other keywords select exactly one curve by any of its values (algorithm, a
parameter, ``label``). Numbers, ``+ - * /``, comparisons (also chained) and ``and`` combine them.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import math
import sys
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedrepro.errors import UserError, nearest
from fedrepro.spec.model import Claim, Curve, Panel

READERS: dict[str, tuple[str, ...]] = {
    "y": ("at", "cost", "since", "of", "when", "axis"),
    "tail": ("share",),
    "total": ("axis",),
    "reach": ("level", "axis"),
    "first": ("level", "axis"),
    "lowest": ("since",),
    "highest": ("since",),
    "slope": ("since", "until", "of"),
    "decay": ("since", "until"),
    "rise": ("since",),
    "parameter": ("name",),
}
SMOOTHED = {
    "value": "the metric itself",
    "mean": "its mean over the rounds so far",
    "squares": "the mean of its squares over the rounds so far",
    "least": "its lowest value so far",
}
"""What ``y`` and ``slope`` can read instead of the metric."""
COMMON = ("panel", "metric")
"""Keywords of every reader; all others select its curve."""
PLAIN = ("abs", "min", "max", "log10", "mean", "quantile", "log_between", "at_most")
EACH, MEDIAN = "each", "median"
ALONE = (EACH, MEDIAN)
"""Functions that compare each trial alone instead of the average."""
WORDS = (*READERS, *PLAIN, *ALONE, *COMMON)
"""Every function that a check can call, then the keywords of all functions that read a curve."""
FORMS: dict[str, str] = {
    "y(at=R)": "the panel's metric at round R (a number, `'end'`, or a list: then it must hold at each)",
    "y(since=R)": "the metric at every recorded round from R on (it must hold at each)",
    "y(cost=C)": (
        "the metric when C numbers have been sent up (at the last round with at most that cost; or a list); undefined "
        "beyond the last recorded cost, unless the run ended by itself"
    ),
    "y(cost=C, axis=A)": "the same for another axis than `uplink_scalars`",
    "y(when=R)": (
        "the metric at a computed round, for instance where another curve reaches a level: `y(when=reach(0.9, m=10))`; "
        "between two recorded rounds by interpolation"
    ),
    "y(at=R, of='mean')": (
        "its mean over the rounds so far, with at, cost or since; `of='squares'`: the mean of its squares; "
        "`of='least'`: its lowest value so far"
    ),
    "tail(share)": "the mean of the metric over the last share of the rounds, `tail(0.1)`",
    "total(axis)": (
        "the last value of `round`, of `uplink_scalars`, `uplink_bits`, `downlink_scalars` or `downlink_bits`, or of a "
        "recorded metric"
    ),
    "reach(level, axis=A)": (
        "the first value of A (default `round`) at which the metric is at or beyond the level in the better direction, "
        "between two recorded rounds by interpolation; infinite where it never gets there"
    ),
    "first(level, axis=A)": (
        "the value of A at the first recorded round whose metric is strictly beyond the level, not interpolated: as "
        "programs count that look for the first index below a level"
    ),
    "lowest()": "the lowest value of the metric over the rounds",
    "lowest(since=R)": "the same, from round R on",
    "highest()": "the highest value of the metric over the rounds",
    "highest(since=R)": "the same, from round R on",
    "slope(since=R, until=S)": (
        "the exponent of the metric as a power of the round between rounds R (default 1) and S (default the last): the "
        "slope of a straight line through its logarithm over that of the round, with equal weight per factor of rounds"
    ),
    "slope(of='mean')": "the same for its mean over the rounds so far; other words as in `y(at=R, of='mean')`",
    "decay(since=R, until=S)": (
        "the average number of powers of ten by which the metric falls per round between two rounds"
    ),
    "rise(since=R)": "the largest increase from one recorded round to the next, below zero if it always falls",
    "parameter(name)": "the value of a numeric parameter of the curve's method: `parameter('beta')`",
    "panel='b'": "in any of these: the panel to read, by default the claim's",
    "metric='rmse'": "in any of these: the recorded metric to read, by default the panel's",
    "abs(a)": "the absolute value",
    "min(a, b)": "the smaller one of two or more values",
    "max(a, b)": "the larger one of two or more values",
    "log10(a)": "the decimal logarithm",
    "mean(a)": "the mean over the rounds of a list or of `since`",
    "quantile(a, q)": "the value below which the share q of the values at several rounds lies",
    "log_between(a, b, share)": "the value at a share of the way from a to b, on a logarithmic scale",
    "at_most(a, b)": "a, or b if a is larger, as one value: `at_most(reach(0.1, Q2=1), total('round', Q2=1))`; a "
    "comparison that fails only because of b is left open",
    "each(a < b)": "the comparison must hold in every trial, for statements about every run",
    "median(a < b)": "the comparison must hold in the median of the trials, for figures that draw the median",
}
"""What a check can contain, with its meaning."""
SYNONYMS = {
    **dict.fromkeys(("end", "final", "last"), "y(at='end', ...)"),
    **dict.fromkeys(("at", "value"), "y(at=ROUND, ...)"),
    **dict.fromkeys(("minimum", "best"), "lowest(...) or highest(...)"),
    "maximum": "highest(...)",
    "average": "tail(SHARE, ...)",
    "rounds": "reach(LEVEL, ...)",
    "cost": "total('uplink_scalars', ...)",
}
"""What to write instead of names that checks do not have."""
SIGNS: dict[type, str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_NODES = (
    ast.Expression, ast.Compare, ast.BoolOp, ast.And, ast.BinOp, ast.UnaryOp, ast.USub, ast.Add, ast.Sub, ast.Mult,
    ast.Div, *SIGNS, ast.Call, ast.Name, ast.Load, ast.Constant, ast.keyword, ast.List,
)  # fmt: skip


LONGEST, DEEPEST = 4000, 60
"""Largest numbers of characters of a check as written, and of nested expressions."""


@functools.lru_cache(maxsize=1024)
def quietly_parsed(check: str) -> ast.Expression:
    """Return the syntax tree of a text (cached), without warnings about texts that look like mistakes in a program."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(check.strip(), mode="eval")


@functools.lru_cache(maxsize=1024)
def parse(check: str) -> ast.Expression:
    """Return the syntax tree of a check (cached). Raises UserError if it is not an expression of this grammar."""
    try:
        tree = quietly_parsed(check)
    except SyntaxError as error:
        raise UserError(f"the check is not an expression: {error.msg} at character {error.offset}") from None
    except ValueError as error:
        raise UserError(f"the check is not an expression: {error}") from None
    except (RecursionError, MemoryError):
        raise UserError(DEEP) from None
    if _deep(tree):
        raise UserError(DEEP)
    _number_parts(tree)
    for node in parts(tree):
        if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops):
            raise UserError(
                f"the check may not contain '{ast.unparse(node)}': computed values are hardly ever exactly equal; say "
                f"how near they have to be, as in abs({ast.unparse(node.left)} - ({ast.unparse(node.comparators[0])})) "
                "< 0.01"
            )
        if not isinstance(node, _NODES):
            raise UserError(
                f"the check may not contain '{ast.unparse(node)}'; it compares what is read from curves: "
                f"{', '.join(f'{name}()' for name in READERS)}"
            )
        if isinstance(node, ast.Call) and not called(node):
            raise UserError(f"the check may not call '{ast.unparse(node.func)}'")
    if not any(isinstance(node, ast.Compare) for node in parts(tree)):
        raise UserError("the check must compare two values with <, <=, > or >=")
    _check_shape(tree.body)
    return tree


@functools.lru_cache(maxsize=1024)
def parse_expanded(check: str) -> ast.Expression:
    """Return the syntax tree of a comparison that words stand for, which needs no checks of its own (cached)."""
    tree = ast.parse(check, mode="eval")
    _number_parts(tree)
    return tree


_NUMBERS: dict[tuple[Any, ...], int] = {}


def _number_parts(node: ast.AST) -> int:
    """Give every part of a check a number, the same for equal parts of all checks: ``part_number``."""
    fields = tuple(
        tuple(map(_number_field, value)) if isinstance(value, list) else _number_field(value)
        for _, value in ast.iter_fields(node)
    )
    number = _NUMBERS.setdefault((type(node), *fields), len(_NUMBERS))
    node.part_number = number  # type: ignore[attr-defined]
    return number


def _number_field(value: Any) -> Any:
    return ("part", _number_parts(value)) if isinstance(value, ast.AST) else (type(value), value)


def part_number(node: ast.AST) -> int | None:
    """Return the number of a part of a parsed check, by which its value can be looked up."""
    return getattr(node, "part_number", None)


def parts(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a parsed check, equal ones once: words stand for checks that repeat few parts many times."""
    seen: set[int | None] = set()
    waiting = deque([tree])
    while waiting:
        node = waiting.popleft()
        number = part_number(node)
        if number is None or number not in seen:
            seen.add(number)
            waiting.extend(ast.iter_child_nodes(node))
            yield node


DEEP = f"the check has more than {DEEPEST} nested expressions"


def _deep(tree: ast.AST) -> bool:
    """Return whether expressions are nested so deep that reading them would exhaust the stack."""
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST + 2):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


def _check_shape(node: ast.expr) -> None:
    """Check that comparisons are joined by ``and``, at most inside ``each`` or ``median``, and never nested."""
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            _check_shape(value)
    elif how := alone(node):
        assert isinstance(node, ast.Call)
        if len(node.args) != 1 or node.keywords:
            raise UserError(f"'{ast.unparse(node)}': {how}() takes one comparison, for instance {how}(y(...) < 1)")
        _check_shape(node.args[0])
    elif not isinstance(node, ast.Compare):
        raise UserError(f"the check's '{ast.unparse(node)}' is not a comparison; use <, <=, > or >=")
    else:
        for side in (node.left, *node.comparators):
            for inner in parts(side):
                if alone(inner) or isinstance(inner, (ast.Compare, ast.BoolOp)):
                    raise UserError(
                        f"the check may not compare '{ast.unparse(inner)}': it is true or false, not a number"
                    )


def called(node: ast.AST) -> str:
    """Return the name of the function that the node calls, '' if it calls none."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def alone(node: ast.AST) -> str:
    """Return ``each`` or ``median`` if the node is a call of it, else ''."""
    name = called(node)
    return name if name in ALONE else ""


def readers(tree: ast.AST) -> Iterator[tuple[ast.Call, str, dict[str, ast.expr]]]:
    """Yield every call that reads a curve, equal ones once: the node, the function's name, its arguments by name."""
    for node in parts(tree):
        if isinstance(node, ast.Call) and called(node) in READERS:
            yield node, called(node), arguments(node)


@functools.lru_cache(maxsize=1024)
def read_by(check: str) -> tuple[tuple[str, Mapping[str, ast.expr]], ...]:
    """Return the function and the arguments of every call by which a check reads a curve (cached)."""
    return tuple((function, keywords) for _, function, keywords in readers(parse(check)))


def arguments(node: ast.Call) -> dict[str, ast.expr]:
    """Return the arguments of a call that reads a curve, by name."""
    own = READERS[called(node)]
    by_place = {own[i] if i < len(own) else f"argument {i + 1}": value for i, value in enumerate(node.args)}
    return by_place | {keyword.arg or "**": keyword.value for keyword in node.keywords}


def constant(node: ast.expr) -> Any:
    """Return the value of a literal, a negative number or a list. Raises UserError for anything else."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise UserError(f"'{ast.unparse(node)}' must be a plain value here") from None


def value(keywords: Mapping[str, ast.expr], name: str, default: Any) -> Any:
    """Return the literal value of an argument, or the default if it is not given."""
    return constant(keywords[name]) if name in keywords else default


_NO_VALUE = object()
"""What is equal to no value of a selector."""


def pick(curves: tuple[Curve, ...], selectors: Mapping[str, Any]) -> Curve:
    """Return the only curve whose values agree with every selector. Raises UserError if there is none or several."""
    matching: Sequence[Curve] = curves
    for name, wanted in selectors.items():  # the first one leaves few for the others
        matching = [curve for curve in matching if curve.select.get(name, _NO_VALUE) == wanted]
    if len(matching) != 1:
        valid = {k for c in curves for k in c.select}
        for key in selectors:
            if key not in valid:
                raise UserError(f"no curve of the panel has '{key}'{nearest(key, valid)}")
        words = ", ".join(f"{k}={v!r}" for k, v in selectors.items()) or "an empty selection"
        names = ", ".join(f"'{c.label}'" for c in (matching or curves))
        result = f"selects {len(matching)} curves ({names})" if matching else f"selects no curve (curves: {names})"
        raise UserError(f"{words} {result}; name exactly one")
    return matching[0]


def is_bound(check: str) -> bool:
    """Return whether a check is one comparison by which its left side is at most its right one."""
    node = parse(check).body
    return isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Lt, ast.LtE))


def panels_of(claim: Claim) -> set[str]:
    """Return the names of the panels that a claim's check reads, if they are literals."""
    names = {claim.panel}
    for check in filter(None, (claim.check, claim.faster, claim.bound, claim.figure_shows)):
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            keywords = [
                node for node in ast.walk(ast.parse(check.strip(), mode="eval")) if isinstance(node, ast.keyword)
            ]
            names |= {str(_literal(keyword.value)) for keyword in keywords if keyword.arg == "panel"}
    return names


def problems(claim: Claim, panels: Mapping[str, Panel], axes: Sequence[str]) -> Iterator[str]:
    """Yield every reason why the claim's check cannot be evaluated on these panels.

    axes : those that a check may name in addition to the recorded metrics.
    """
    written = claim.words or claim.check
    if len(written) > LONGEST:
        yield f"the check has {len(written):,} characters; at most {LONGEST:,} are allowed"
        return
    try:
        tree = parse(claim.check)
    except UserError as error:
        yield str(error)
        return
    nodes = list(parts(tree))
    names = {name for node in nodes if (name := called(node))}
    known = (*READERS, *PLAIN, *ALONE)
    metrics = {metric for panel in panels.values() for curve in panel.curves for metric in curve.setting.metrics}
    written_for = {**{metric: f"y(at='end', metric='{metric}')" for metric in metrics}, **SYNONYMS}
    unknown = sorted({n.id for n in nodes if isinstance(n, ast.Name)} - set(known))
    for name in unknown:
        near = f", write {written_for[name]}" if name in written_for else nearest(name, known)
        yield f"'{name}' is not a function of checks{near} (functions: {', '.join(known)})"
    if not unknown and not names & set(READERS):
        yield f"the check reads no curve; use {', '.join(f'{name}()' for name in READERS)}"
    errors = []
    for node, function, keywords in readers(tree):
        try:
            _check_reader(node, function, keywords, claim, panels, axes)
        except _Wrong as error:
            errors.append(f"{ast.unparse(node)}: {error}")
        except UserError as error:
            errors.append(str(error))
    yield from errors
    if not errors and names <= set(known) and not claim.words:
        yield from _miscounted(tree)


def select(
    function: str, keywords: Mapping[str, ast.expr], claim: Claim, panels: Mapping[str, Panel]
) -> tuple[Panel, Curve]:
    """Return the panel and the curve that a call of a reader selects.

    Raises UserError if there is no such panel, or not exactly one such curve.
    """
    name = value(keywords, "panel", claim.panel)
    if name not in list(panels):
        raise UserError(f"there is no panel '{name}'{nearest(str(name), panels)}")
    own = (*READERS[function], *COMMON)
    return panels[name], pick(panels[name].curves, {k: constant(v) for k, v in keywords.items() if k not in own})


class _Wrong(UserError):
    """A call that reads a curve is wrong; the message follows the call as it is written."""


def _check_reader(
    node: ast.Call,
    function: str,
    keywords: Mapping[str, ast.expr],
    claim: Claim,
    panels: Mapping[str, Panel],
    axes: Sequence[str],
) -> None:
    if len(node.args) > len(READERS[function]) or len(node.args) + len(node.keywords) > len(keywords):
        most = ", ".join(READERS[function])
        raise _Wrong(f"{function}() takes each of its values once, and without a name only {most}")
    if function == "y" and len({"at", "cost", "since", "when"} & set(keywords)) != 1:
        raise _Wrong("y() needs at=ROUND, since=ROUND, when=ROUND or cost=NUMBER, one of the four")
    if function == "tail" and not 0 < _share(keywords) <= 1:
        raise _Wrong("tail() needs the share of the rounds, above 0 and at most 1, as in tail(0.1)")
    if function in ("reach", "first") and "level" not in keywords:
        raise _Wrong(f"{function}() needs the level to reach as its first argument")
    if function == "parameter" and "name" not in keywords:
        raise _Wrong("parameter() needs the name of a parameter, for instance parameter('Q2')")
    _check_rounds(function, keywords)
    panel, curve = select(function, keywords, claim, panels)
    valid = (*axes, *curve.setting.metrics)
    if function == "parameter":
        _check_parameter(constant(keywords["name"]), curve)
    axis = value(keywords, "axis", "round") if "axis" in READERS[function] else "round"
    if axis not in valid:
        raise _Wrong(f"'{axis}' is not an axis{nearest(str(axis), valid)} (axes: {', '.join(valid)})")
    metric = value(keywords, "metric", panel.y)
    if metric not in curve.setting.metrics:
        raise _Wrong(f"the metric '{metric}' is not recorded{nearest(str(metric), curve.setting.metrics)}")


def _share(keywords: Mapping[str, ast.expr]) -> float:
    share = value(keywords, "share", 0)
    return float(share) if _is_number(share) else 0.0


def _check_parameter(name: Any, curve: Curve) -> None:
    """Check that the curve's method has the parameter, and that it is a number."""
    if name not in list(curve.setting.params):
        raise _Wrong(f"'{curve.label}' has no parameter '{name}'{nearest(str(name), curve.setting.params)}")
    if not _is_number(curve.setting.params[name]):
        raise _Wrong(f"{name} is {curve.setting.params[name]!r} there, not a number")


# -- numbers of values -------------------------------------------------------------------------------------------------


def _check_rounds(function: str, keywords: Mapping[str, ast.expr]) -> None:
    """Check that ``at`` is a round, 'end' or a list of them, and ``since`` and ``until`` are rounds."""
    own = {name: node for name, node in keywords.items() if name in READERS[function]}
    at, since, of = value(own, "at", 0), value(own, "since", 0), value(own, "of", "value")
    if at == [] or not all(r == "end" or _is_round(r) for r in (at if isinstance(at, list) else [at])):
        raise _Wrong(f"at={at!r} must be a round (a whole number from 0 on), 'end', or a list of them")
    if not _is_round(since):
        raise _Wrong(f"since={since!r} must be a round (a whole number from 0 on)")
    until = value(own, "until", math.inf)
    if "until" in own and not (_is_round(until) and until > since):
        raise _Wrong(f"until={until!r} must be a round (a whole number) after the first, {since:g}")
    if of not in list(SMOOTHED):
        raise _Wrong(f"of={of!r} must be one of {', '.join(SMOOTHED)}{nearest(str(of), SMOOTHED)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_round(value: Any) -> bool:
    return _is_number(value) and value >= 0 and float(value).is_integer()


def _miscounted(tree: ast.AST) -> Iterator[str]:
    """Yield an error for every comparison whose sides are not numbers, or different numbers of them."""
    for node in parts(tree):
        if isinstance(node, ast.Compare):
            try:
                for left, right in itertools.pairwise([node.left, *node.comparators]):
                    _together(node, [left, right])
            except UserError as error:
                yield str(error)


def _count(node: ast.expr) -> int | None:
    """Return how many numbers an expression has; None if the results decide. Raises UserError if it has none."""
    if isinstance(node, ast.BinOp):
        return _together(node, [node.left, node.right])
    if isinstance(node, ast.UnaryOp):
        return _count(node.operand)
    if isinstance(node, ast.Call):
        return _count_read(node) if called(node) in READERS else _count_made(node, called(node))
    literal = _literal(node)
    listed = literal if isinstance(literal, list) else [literal]
    if not listed or not all(map(_is_number, listed)):
        raise UserError(f"{ast.unparse(node)} is neither a number nor a list of numbers")
    return len(listed)


def _literal(node: ast.expr) -> Any:
    """Return the value of a literal, None for anything else."""
    try:
        return constant(node)
    except UserError:
        return None


def _count_read(node: ast.Call) -> int | None:
    """Return how many numbers are read from a curve; its level must be one number."""
    ((_, function, keywords),) = itertools.islice(readers(node), 1)
    if "level" in READERS[function] and _count(keywords["level"]) != 1:
        raise UserError(f"{ast.unparse(node)}: {function}() needs one level, not several")
    if function != "y":
        return 1
    if "cost" in keywords:
        return _count(keywords["cost"])
    if "when" in keywords:
        return _count(keywords["when"])
    at = value(keywords, "at", None)
    return None if at is None else len(at) if isinstance(at, list) else 1


def _count_made(node: ast.Call, function: str) -> int | None:
    """Return how many numbers ``abs``, ``log10``, ``mean``, ``quantile``, ``min`` or ``max`` returns."""
    if function == "quantile":
        if len(node.args) != 2 or node.keywords or not _is_number(_literal(node.args[1])):
            raise UserError(f"{ast.unparse(node)}: quantile() takes values and a share, as in quantile(a, 0.05)")
        _count(node.args[0])
        return 1
    if function == "log_between":
        if len(node.args) != 3 or node.keywords or not _is_number(_literal(node.args[2])):
            raise UserError(f"{ast.unparse(node)}: log_between() takes two values and a share, as in (a, b, 0.9)")
        return _together(node, node.args[:2])
    several = function in ("min", "max", "at_most")
    if node.keywords or not (len(node.args) >= 2 if several else len(node.args) == 1):
        wanted = "two values or more, and compares them" if several else "one value"
        raise UserError(f"{ast.unparse(node)}: {function}() takes {wanted}")
    counted = _together(node, node.args)
    return 1 if function == "mean" else counted


def _together(node: ast.expr, parts: Sequence[ast.expr]) -> int | None:
    """Return how many numbers several expressions have together; each has one, or as many as the others."""
    counts = [_count(part) for part in parts]
    known = sorted({count for count in counts if count is not None and count > 1})
    if len(known) > 1:
        raise UserError(f"'{ast.unparse(node)}': its sides are read at {known[0]} and at {known[1]} rounds")
    return known[0] if known else None if None in counts else 1
