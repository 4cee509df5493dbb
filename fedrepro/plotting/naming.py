"""Names for readers: the papers' symbols, and words for values, datasets and partitions.

The automatic label of a curve lists what varies (``FedMGS m=10 case2``); ``legend`` turns it into ``FedMGS, $m$ = 10,
non-i.i.d.``. Labels and titles of a spec are kept, with symbols inserted. Pictures show symbols as mathematics; tables
show them as plain text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedrepro import registry
from fedrepro.data.own_paths import label
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
    "per_alphabet": ("1 client per alphabet", "{} clients per alphabet"),
    "per_client": ("1 item per client", "{} items per client"),
    "train": ("1 to train with", "{} to train with"),
    "test": ("1 to test with", "{} to test with"),
}
"""Parameter -> phrases for the value 1 and for other values."""

VALUES: dict[tuple[str, str], str] = {
    ("participation", "pcc"): "PCC",
    ("participation", "pcp"): "PCP",
    ("m", "None"): "all clients",
    ("feedback", "True"): "with error feedback",
    ("feedback", "False"): "no error feedback",
    ("variant", "authors"): "as released",
    ("variant", "clean"): "no zero columns",
    ("well_posed", "True"): "well-posed draws",
    ("well_posed", "False"): "draws as they come",
}
"""Parameter and value -> its phrase."""

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
    "two_digits": "two digits per client",
    "uniform": "i.i.d.",
    "users": "by user",
}
"""Registered name -> its name for readers; a test requires one for every registered name."""

_PAIR = re.compile(r"(\S+)=(\S+)")


def symbol(name: str, plain: bool = False) -> str:
    """Return the papers' symbol of a parameter, or words for one without a symbol."""
    if name in SYMBOLS:
        return SYMBOLS[name][plain]
    if len(name) == 1 and name.isalpha():
        return name if plain else f"${name}$"
    return name.replace("_", " ")


def value(of: Any, plain: bool = False) -> str:
    """Return a parameter's value as text: small and large round numbers as powers of ten, other integers in full.

    plain : without mathematics and with every integer in full, as in tables.
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
    """Return a parameter with its value, ``$m$ = 10``, or a phrase for it."""
    if (name, str(of)) in VALUES:
        return VALUES[name, str(of)]
    if name in PHRASES:
        singular, plural = PHRASES[name]
        return singular if str(of) == "1" else plural.format(value(of, plain))
    return f"{symbol(name, plain)} = {value(of, plain)}"


# -- titles and labels that a spec gives -------------------------------------------------------------------------------

_NAMED = re.compile(rf"(?<![\w$\\])({'|'.join(sorted(SYMBOLS, key=len, reverse=True))})(?![\w=])")
_LETTER = re.compile(r"(?<![\w$\\^{])([A-Za-z])(?= = )")
_POWER = re.compile(r"(?<![\w.$])(\d(?:\.\d+)?)e([+-]?\d+)(?![\w.])")


def symbols(text: str) -> str:
    """Return a title or label with the papers' symbols for its parameters, unchanged if it has formulas of its own."""
    if "$" in text:
        return text
    text = _NAMED.sub(lambda match: SYMBOLS[match[1]][0], text)
    text = _LETTER.sub(lambda match: f"${match[1]}$", text)
    return _POWER.sub(lambda match: value(float(match[0])), text)


# -- names of data and partitions --------------------------------------------------------------------------------------


KINDS: dict[str, Mapping[str, str]] = {"dataset": DATASETS, "partition": PARTITIONS}


def aliases(curves: Iterable[Curve], plain: bool = False, kinds: Iterable[str] = tuple(KINDS)) -> dict[str, str]:
    """Return words for each dataset and partition in a spec: its registered name, or the parameters that differ.

    Several names of one registered dataset are distinguished by the parameters in which they differ.
    """
    words: dict[str, str] = {}
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
            files = [called(*other) if kind == "dataset" else "" for other in known.values()]
            told = files.count(own) == 1  # the name of a file tells it apart
            pairs = [] if told else [pair(n, params[n], plain) for n in differ]
            alone = {registered for registered, _ in known.values()} == {name}
            text = ", ".join(pairs if alone and pairs else [own, *pairs])
            words[alias] = f"{text} ({alias})" if text in words.values() else text
    return words


# -- curves ------------------------------------------------------------------------------------------------------------


def legend(curve: Curve, panel: Panel, figure: Figure | None = None) -> str:
    """Return the legend text of a curve: its method, unless a title names the only one, and what varies."""
    return legends(panel, figure)[panel.curves.index(curve)]


def legends(panel: Panel, figure: Figure | None = None) -> list[str]:
    """Return ``legend`` of every curve of a panel, all different if the curves' labels are."""
    named = aliases(panel.curves)
    texts_ = [_legend(curve, panel, figure, named) for curve in panel.curves]
    return [text if texts_.count(text) == 1 else symbols(c.label) for text, c in zip(texts_, panel.curves, strict=True)]


def _legend(curve: Curve, panel: Panel, figure: Figure | None, named: Mapping[str, str]) -> str:
    varying = _varying(curve)
    if varying is None:
        return symbols(curve.label)
    stated = set(re.findall(r"(\w+) = ", f"{figure.title if figure else ''} {panel.title}"))
    parts = [
        named.get(str(of), str(of)) if name in ("dataset", "partition") else pair(name, of)
        for name, of in varying
        if not (name in stated and _moves_along(name, curve, panel))
    ]
    if not parts or not _titled(curve, panel, figure):
        parts = [layout.method_of(curve), *parts]
    return ", ".join(parts)


def _varying(curve: Curve) -> list[tuple[str, Any]] | None:
    """Return names and values of the parameters, dataset and partition in an automatic label; None for others."""
    method = layout.method_of(curve)
    if curve.label != method and not curve.label.startswith(method + " "):
        return None
    varying: list[tuple[str, Any]] = []
    kinds = {alias: kind for kind, alias in curve.setting.names.items() if alias}
    for word in curve.label[len(method) :].split():
        name, equals, _ = word.partition("=")
        if equals and name in curve.select:
            varying.append((name, curve.select[name]))
        elif word == f"rounds={curve.setting.rounds}":
            varying.append((name, curve.setting.rounds))
        elif word in kinds:
            varying.append((kinds[word], word))
        else:
            return None
    return varying


def _moves_along(name: str, curve: Curve, panel: Panel) -> bool:
    """Return whether the value is determined by another value in the label."""
    same = [c for c in panel.curves if c.setting.algorithm == curve.setting.algorithm]
    labels = [dict(pairs) for c in same if (pairs := _varying(c))]
    others = dict.fromkeys(other for label in labels for other in label if other != name)
    return any(
        len({repr(label.get(name)) for label in labels})
        == len({(repr(label.get(name)), repr(label.get(other))) for label in labels})
        == len({repr(label.get(other)) for label in labels})
        for other in others
    )


def _titled(curve: Curve, panel: Panel, figure: Figure | None) -> bool:
    """Return whether a title names the only moving method and no other, and every label has more than the method."""
    moving = [c for c in panel.curves if c.role != "level"]
    if curve.role == "level" or len({c.setting.algorithm for c in moving}) > 1 or not all(_varying(c) for c in moving):
        return False
    methods = {_base(c) for shown in (figure.panels if figure else (panel,)) for c in shown.curves}
    titles = (panel.title, figure.title if figure else "")
    named = [{base for base in methods if re.search(rf"(?<!\w){re.escape(base)}(?!\w)", text)} for text in titles]
    return {_base(curve)} in named


def _base(curve: Curve) -> str:
    """Return the name of a method without additions in parentheses or after a comma."""
    return registry.base_label(layout.method_of(curve))


# -- texts made of them ------------------------------------------------------------------------------------------------


def text(raw: str, curves: Sequence[Curve], plain: bool = False, kinds: Iterable[str] = tuple(KINDS)) -> str:
    """Return a label, row or group of ``spec.layout`` (``FedMGS m=10``) for a reader.

    kinds : whether it has names of datasets or partitions.
    """
    named = aliases(curves, plain, kinds)
    known = {name for c in curves for name in layout.values_of(c)}
    result = ""
    for word in raw.split(" "):
        match = _PAIR.fullmatch(word)
        if match and match[1] in known:
            result += (", " if result else "") + pair(match[1], _number(match[2]), plain)
        else:
            result += (" " if result else "") + named.get(word, word)
    return result


def texts(raw: Iterable[str], curves: Sequence[Curve]) -> list[str]:
    """Return ``text`` of several labels; labels whose texts would be equal stay unchanged."""
    raw = list(raw)
    converted = [text(label_, curves) for label_ in raw]
    return [to if converted.count(to) == 1 else label_ for to, label_ in zip(converted, raw, strict=True)]


def _number(raw: str) -> Any:
    """Return the text as a number if it is one."""
    for kind in (int, float):
        try:
            return kind(raw)
        except ValueError:
            pass
    return raw


def dataset(name: str) -> str:
    """Return the name of a registered dataset for readers."""
    return DATASETS.get(name, name)


def called(name: str, params: Mapping[str, Any]) -> str:
    """Return the name of the user's own file that a dataset with these parameters reads; '' for others."""
    entry = registry.datasets().get(name)
    return label(entry.cls.files, params) if entry is not None else ""


def plain(text: str) -> str:
    """Return a text without mathematics, for tooltips and files."""
    for formula, letters in SYMBOLS.values():
        text = text.replace(formula, letters)
    text = re.sub(r"\$10\^\{(-?\d+)\}\$", r"1e\1", text)
    text = re.sub(r"\$(\d[\d.]*)\\times 10\^\{(-?\d+)\}\$", r"\1e\2", text)
    return re.sub(r"\$(\w)\$", r"\1", text)
