"""What a reader sees in place of the names that specs use: the papers' symbols, and words for values, data and sharing.

A curve's label that the spec leaves out lists what varies (``FedMGS m=10 case2``); ``legend`` turns it into ``FedMGS,
$m$ = 10, non-i.i.d.``. Labels and titles that a spec gives are kept, with symbols in them. Pictures set symbols as
mathematics; tables, which are files too, have them plain.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedrepro import registry
from fedrepro.data.own import label
from fedrepro.spec import layout
from fedrepro.spec.model import Curve, Figure, Panel

SYMBOLS: dict[str, tuple[str, str]] = {
    "Q1": ("$Q_1$", "Q1"),
    "Q2": ("$Q_2$", "Q2"),
    "Qhat": (r"$\hat{Q}$", "Q\u0302"),
    "gamma1": (r"$\gamma_1$", "γ1"),
    "gamma2": (r"$\gamma_2$", "γ2"),
    "L_W": ("$L_W$", "L_W"),
    "L_U": ("$L_U$", "L_U"),
    "G_W": ("$G_W$", "G_W"),
    "G_H": ("$G_H$", "G_H"),
    "lam": (r"$\lambda$", "λ"),
    "gam": (r"$\gamma$", "γ"),
    "alpha": (r"$\alpha$", "α"),
    "beta": (r"$\beta$", "β"),
    "eta": (r"$\eta$", "η"),
    "mu": (r"$\mu$", "μ"),
    "nu": (r"$\nu$", "ν"),
    "rho": (r"$\rho$", "ρ"),
    "tau": (r"$\tau$", "τ"),
    "sigma_b": (r"$\sigma_b$", "σ_b"),
}
"""Parameter -> its symbol as mathematics and in plain letters. A parameter of one letter is its own symbol."""

PHRASES: dict[str, tuple[str, str]] = {
    "per_alphabet": ("1 client an alphabet", "{} clients an alphabet"),
    "per_client": ("1 item a client", "{} items a client"),
    "train": ("1 to train with", "{} to train with"),
    "test": ("1 to test with", "{} to test with"),
}
"""Parameter -> what is said of the value 1, and of others."""

VALUES: dict[tuple[str, str], str] = {
    ("participation", "pcc"): "PCC",
    ("participation", "pcp"): "PCP",
    ("feedback", "True"): "with error feedback",
    ("feedback", "False"): "no error feedback",
    ("variant", "authors"): "as released",
    ("variant", "clean"): "no zero columns",
    ("well_posed", "True"): "well-posed draws",
    ("well_posed", "False"): "draws as they come",
}
"""Parameter and value -> what is said of it."""

DATASETS: dict[str, str] = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "europarl": "Europarl",
    "digits": "small digits",
    "entries-file": "own entries",
    "file": "own file",
    "gcca-sparse": "sparse views",
    "gcca-synthetic": "synthetic views",
    "gcca-toy": "2-D views",
    "images-file": "own images",
    "imc": "inductive matrices",
    "mnist": "MNIST",
    "movielens-10m": "MovieLens 10M",
    "movielens-1m": "MovieLens 1M",
    "netflix": "Netflix",
    "omniglot": "Omniglot",
    "ratings-file": "own ratings",
    "regression-file": "own samples",
    "shift": "biased clients",
    "synpuf": "SynPUF",
    "synthetic": "synthetic",
    "tcga": "TCGA",
    "tdt2": "TDT2",
    "views-file": "own views",
}
PARTITIONS: dict[str, str] = {
    "alphabets": "by alphabet",
    "dirichlet": "Dirichlet",
    "given": "clients as given",
    "iid_images": "i.i.d.",
    "similarity": "non-i.i.d.",
    "two_digits": "two digits a client",
    "uniform": "i.i.d.",
    "users": "by user",
}
"""Registered name -> what a reader calls it; a test asks it of every name."""

_PAIR = re.compile(r"(\S+)=(\S+)")


def symbol(name: str, plain: bool = False) -> str:
    """A parameter as the papers write it; words for one without a symbol."""
    if name in SYMBOLS:
        return SYMBOLS[name][plain]
    if len(name) == 1 and name.isalpha():
        return name if plain else f"${name}$"
    return name.replace("_", " ")


def value(of: Any, plain: bool = False) -> str:
    """A parameter's value: small and large round numbers as powers of ten, other whole ones in full.

    ``plain``: without mathematics, and every whole number in full, as tables have them.
    """
    if isinstance(of, bool):
        return "yes" if of else "no"
    if not isinstance(of, (int, float)) or not math.isfinite(of):
        return str(of)
    mantissa, _, power = f"{of:e}".partition("e")
    mantissa, power = f"{float(mantissa):g}", str(int(power))
    short = len(mantissa) <= 3 and float(f"{mantissa}e{power}") == of
    if float(of).is_integer() and abs(of) < 1e15 and (plain or (int(power) >= 4 and not short)):
        return f"{of:,.0f}"
    if plain or -2 <= int(power) < 4 or len(mantissa) > 3:
        return f"{of:g}"
    return f"$10^{{{power}}}$" if mantissa == "1" else rf"${mantissa}\times 10^{{{power}}}$"


def pair(name: str, of: Any, plain: bool = False) -> str:
    """A parameter with its value: ``$m$ = 10``, or a phrase for it."""
    if (name, str(of)) in VALUES:
        return VALUES[name, str(of)]
    if name in PHRASES:
        one, more = PHRASES[name]
        return one if str(of) == "1" else more.format(value(of, plain))
    return f"{symbol(name, plain)} = {value(of, plain)}"


# -- titles and labels that a spec gives -------------------------------------------------------------------------------

_NAMED = re.compile(rf"(?<![\w$\\])({'|'.join(sorted(SYMBOLS, key=len, reverse=True))})(?![\w=])")
_LETTER = re.compile(r"(?<![\w$\\^{])([A-Za-z])(?= = )")
_POWER = re.compile(r"(?<![\w.$])(\d(?:\.\d+)?)e([+-]?\d+)(?![\w.])")


def symbols(text: str) -> str:
    """A title or label with the papers' symbols for the parameters that it names; left alone where it has its own."""
    if "$" in text:
        return text
    text = _NAMED.sub(lambda found: SYMBOLS[found[1]][0], text)
    text = _LETTER.sub(lambda found: f"${found[1]}$", text)
    return _POWER.sub(lambda found: value(float(found[0])), text)


# -- names of data and partitions --------------------------------------------------------------------------------------


KINDS: dict[str, Mapping[str, str]] = {"dataset": DATASETS, "partition": PARTITIONS}


def aliases(curves: Iterable[Curve], plain: bool = False, kinds: Iterable[str] = tuple(KINDS)) -> dict[str, str]:
    """What to call each name of a dataset or partition in a spec: the registered one in words, or what differs.

    Names of one registered dataset are told by the parameters in which they differ.
    """
    found: dict[str, str] = {}
    curves = list(curves)
    for kind, names in ((kind, KINDS[kind]) for kind in KINDS if kind in kinds):
        known: dict[str, tuple[str, Mapping[str, Any]]] = {}
        for curve in curves:
            setting = curve.setting
            alias = setting.names.get(kind, "")
            if alias:
                known[alias] = (str(getattr(setting, kind)), getattr(setting, f"{kind}_params"))
        for alias, (name, params) in known.items():
            own = (kind == "dataset" and called(name, params)) or names.get(name, alias)
            rivals = [other for registered, other in known.values() if registered == name]
            differ = [n for n in params if len({repr(other.get(n)) for other in rivals}) > 1]
            told = [pair(n, params[n], plain) for n in differ]
            alone = {registered for registered, _ in known.values()} == {name}
            said = ", ".join(told if alone and told else [own, *told])
            found[alias] = f"{said} ({alias})" if said in found.values() else said
    return found


# -- curves ------------------------------------------------------------------------------------------------------------


def legend(curve: Curve, panel: Panel, figure: Figure | None = None) -> str:
    """What the legend says of a curve: its method, unless a title names the only one, and what varies."""
    return legends(panel, figure)[panel.curves.index(curve)]


def legends(panel: Panel, figure: Figure | None = None) -> list[str]:
    """``legend`` of every curve of a panel; no two are alike where the curves' labels are not."""
    found = [_legend(curve, panel, figure) for curve in panel.curves]
    return [said if found.count(said) == 1 else symbols(c.label) for said, c in zip(found, panel.curves, strict=True)]


def _legend(curve: Curve, panel: Panel, figure: Figure | None) -> str:
    told = _told(curve)
    if told is None:
        return symbols(curve.label)
    named = aliases(panel.curves)
    stated = _stated(panel, figure)
    parts = [
        named.get(str(of), str(of)) if name in ("dataset", "partition") else pair(name, of)
        for name, of in told
        if not (name in stated and _moves_along(name, curve, panel))
    ]
    if not parts or not _titled(curve, panel, figure):
        parts = [layout.method_of(curve), *parts]
    return ", ".join(parts)


def _told(curve: Curve) -> list[tuple[str, Any]] | None:
    """What an automatic label tells: names of parameters, dataset and partition with values; None for another label."""
    method = layout.method_of(curve)
    if curve.label != method and not curve.label.startswith(method + " "):
        return None
    told: list[tuple[str, Any]] = []
    kinds = {alias: kind for kind, alias in curve.setting.names.items() if alias}
    for word in curve.label[len(method) :].split():
        name, equals, _ = word.partition("=")
        if equals and name in curve.select:
            told.append((name, curve.select[name]))
        elif word == f"rounds={curve.setting.rounds}":
            told.append((name, curve.setting.rounds))
        elif word in kinds:
            told.append((kinds[word], word))
        else:
            return None
    return told


def _stated(panel: Panel, figure: Figure | None) -> set[str]:
    """The parameters for which a title has a formula or value."""
    text = f"{figure.title if figure else ''} {panel.title}"
    return set(re.findall(r"(\w+) = ", text))


def _moves_along(name: str, curve: Curve, panel: Panel) -> bool:
    """Whether the value says nothing that another one, which its label tells too, does not say."""
    told = [dict(found) for c in panel.curves if c.setting.algorithm == curve.setting.algorithm and (found := _told(c))]
    others = dict.fromkeys(other for found in told for other in found if other != name)
    return any(
        len({repr(found.get(name)) for found in told})
        == len({(repr(found.get(name)), repr(found.get(other))) for found in told})
        == len({repr(found.get(other)) for found in told})
        for other in others
    )


def _titled(curve: Curve, panel: Panel, figure: Figure | None) -> bool:
    """Whether a title names the method and no other, the only one that moves, and every curve tells more than it."""
    moving = [c for c in panel.curves if c.role != "level"]
    if curve.role == "level" or len({c.setting.algorithm for c in moving}) > 1 or not all(_told(c) for c in moving):
        return False
    methods = {_base(c) for shown in (figure.panels if figure else (panel,)) for c in shown.curves}
    titles = (panel.title, figure.title if figure else "")
    named = [{base for base in methods if re.search(rf"(?<!\w){re.escape(base)}(?!\w)", text)} for text in titles]
    return {_base(curve)} in named


def _base(curve: Curve) -> str:
    """The name of a method without that of its variant."""
    return registry.base_label(layout.method_of(curve))


# -- texts made of them ------------------------------------------------------------------------------------------------


def text(raw: str, curves: Sequence[Curve], plain: bool = False, kinds: Iterable[str] = tuple(KINDS)) -> str:
    """A line's label, a row or a group as ``spec.layout`` writes it (``FedMGS m=10``), for a reader.

    ``kinds``: of what it has names, datasets or partitions.
    """
    named = aliases(curves, plain, kinds)
    known = {name for c in curves for name in layout.values_of(c)}
    said = ""
    for word in raw.split(" "):
        found = _PAIR.fullmatch(word)
        if found and found[1] in known:
            said += (", " if said else "") + pair(found[1], _number(found[2]), plain)
        else:
            said += (" " if said else "") + named.get(word, word)
    return said


def texts(raw: Iterable[str], curves: Sequence[Curve]) -> list[str]:
    """``text`` of several lines' labels; those that would read alike stay as they are."""
    raw = list(raw)
    said = [text(one, curves) for one in raw]
    return [to if said.count(to) == 1 else one for to, one in zip(said, raw, strict=True)]


def _number(raw: str) -> Any:
    """A number where the text is one."""
    for kind in (int, float):
        try:
            return kind(raw)
        except ValueError:
            pass
    return raw


def dataset(name: str) -> str:
    """What a reader calls a registered dataset."""
    return DATASETS.get(name, name)


def called(name: str, params: Mapping[str, Any]) -> str:
    """What a reader calls the file of the user's own that a dataset with these parameters reads; '' for others."""
    entry = registry.datasets().get(name)
    return label(entry.cls.files, params) if entry is not None else ""


def plain(text: str) -> str:
    """A text without mathematics, for tooltips and files."""
    for formula, letters in SYMBOLS.values():
        text = text.replace(formula, letters)
    text = re.sub(r"\$10\^\{(-?\d+)\}\$", r"1e\1", text)
    text = re.sub(r"\$(\d[\d.]*)\\times 10\^\{(-?\d+)\}\$", r"\1e\2", text)
    return re.sub(r"\$(\w)\$", r"\1", text)
