"""The provenance of a picture: a record of its results, written into its file and read back.

The record is a JSON object in the format's field for descriptions (``FIELDS``). It contains neither a date nor facts
about the machine, so the same results give the same file.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.results import staleness
from fedrepro.results.read import content_hash, place, points_file, read_sidecar, results_file, stem
from fedrepro.results.schema import Made, Sidecar
from fedrepro.spec import nodes
from fedrepro.spec.find import FOLDER, find_spec, project, within
from fedrepro.spec.model import Figure

VERSION = 1
"""Version of the record, under the key ``fedrepro``."""

FIELDS = {"png": "Description", "pdf": "Subject", "svg": "Description"}
"""The metadata field of each format that contains the record."""

SAME, CHANGED, ABSENT = "the same", "changed", "not here"
UNDRAWN = "changed in nothing that is drawn"
"""Outcome for a spec if only its claims, note, other tiers or formatting have changed."""

HOLDS = (SAME, UNDRAWN)
"""Outcomes that `provenance --check` accepts."""


def record(figure: Figure, sidecar: Sidecar, root: Path | None = None, options: Mapping[str, str] | None = None) -> str:
    """Return the record of a figure's picture as JSON.

    root : folder of its results, None for results from another source. options : those of ``plot`` besides the tier.
    """
    name, spec = figure.name, within(figure.path)
    short = name if spec == f"{FOLDER}/{name}.yaml" else spec
    chosen = [part for key, value in (options or {}).items() for part in (f"--{key}", value)]
    changed = [part for item in sidecar.sets for part in ("--set", item)]
    facts = {
        "fedrepro": VERSION,
        "figure": name,
        "command": shlex.join(["fedrepro", "plot", short, "--tier", figure.tier, *chosen, *changed]),
        "results_of": shlex.join(["fedrepro", "run", short, "--tier", figure.tier, *changed]),
        "tier": figure.tier,
        "sets": list(sidecar.sets),
        "commit": _commit(sidecar.made),
        "spec": spec,
        "spec_sha256": _hash(Path(figure.path)),
        "drawn_sha256": _drawn(Path(figure.path), figure.tier),
        "results_sha256": sidecar.csv_sha256,
    }
    if root is not None:
        facts |= _contents(stem(root, figure), bool(figure.timed()))
    return json.dumps(facts)


def _commit(made: Made) -> str:
    return (made.commit or made.without_commit) + (" with changes" if made.dirty else "")


def _contents(base: Path, timed: bool) -> dict[str, str]:
    """Return hashes of the results at ``base``: the uncompressed CSV, points, and times if they are drawn."""
    table = results_file(base)
    hashes = {"results_sha256": content_hash(table) if table is not None else ""}
    if (points := points_file(base)) is not None:
        hashes["points_sha256"] = content_hash(points)
    if timed:
        times = (read_sidecar(base) or Sidecar()).timing
        plain = {series: {str(trial): vars(timing) for trial, timing in runs.items()} for series, runs in times.items()}
        hashes["times_sha256"] = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
    return hashes


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _drawn(spec: Path, tier: str) -> str:
    """Return a hash of the parts of a spec that affect a tier's pictures, '' if it cannot be read."""
    try:
        keys = nodes.read(spec).plain()
    except UserError:
        return ""
    if not isinstance(keys, dict):
        return ""
    kept = {key: value for key, value in keys.items() if key not in ("claims", "note", "queue", "source", "tiers")}
    tiers = keys.get("tiers")
    if isinstance(tiers, dict):
        kept["tier"] = tiers.get(tier) or {}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, default=str).encode()).hexdigest()


# -- reading it back ---------------------------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Any]:
    """Return the record in a PNG, PDF or SVG file. Raises UserError if there is none, or the file is damaged."""
    if path.exists() and not path.is_file():  # reading a pipe or a device may never end
        raise UserError(f"{path}: is not a regular file")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    kinds = {b"\x89PNG": _of_png, b"%PDF": _of_pdf, b"<": _of_svg}
    opening = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    reader = next((reader for start, reader in kinds.items() if opening.startswith(start)), None)
    if reader is None:
        raise UserError(f"{path}: is not a PNG, PDF or SVG file")
    for text in reader(path, content):
        try:
            facts = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(facts, dict) and "fedrepro" in facts:
            return _checked(path, facts)
    raise UserError(f"{path}: has no record of its provenance; only pictures of `fedrepro plot` have one")


def _checked(path: Path, facts: dict[str, Any]) -> dict[str, Any]:
    if facts["fedrepro"] != VERSION:
        raise UserError(f"{path}: version {facts['fedrepro']!r} of its record is unknown (known: {VERSION})")
    texts = ("figure", "command", "results_of", "tier", "commit", "spec", "spec_sha256", "results_sha256")
    if not all(isinstance(facts.get(key), str) for key in texts) or not _is_place(facts["figure"], facts["tier"]):
        raise UserError(f"{path}: its record of its provenance is damaged")
    return facts


def _is_place(figure: str, tier: str) -> bool:
    """Return whether results can be stored under these names, which must not lead to another folder."""
    return bool(re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", figure) and re.fullmatch(r"\w+", tier))


def _of_png(path: Path, _content: bytes) -> list[str]:
    from PIL import Image

    try:
        with Image.open(path, formats=["PNG"]) as picture:
            picture.load()  # fails if the file is truncated, even behind the record
            return [str(picture.info.get(FIELDS["png"], ""))]
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise UserError(f"{path}: is a damaged PNG file ({error})") from None


def _of_pdf(path: Path, content: bytes) -> list[str]:
    """Return the texts of the field, which matplotlib writes in parentheses with some characters escaped."""
    if b"%%EOF" not in content[-1024:]:
        raise UserError(f"{path}: is a damaged PDF file (it is truncated)")
    texts = re.findall(rb"/%s\s*\(((?:[^()\\]|\\.)*)\)" % FIELDS["pdf"].encode(), content, re.DOTALL)
    return [re.sub(rb"\\(.)", rb"\1", text).decode("latin-1") for text in texts[::-1]]


def _of_svg(path: Path, content: bytes) -> list[str]:
    """Return the texts of the field. Files that define entities are not parsed."""
    from xml.etree import ElementTree

    if b"<!ENTITY" in content.replace(b"\0", b""):  # also in UTF-16
        raise UserError(f"{path}: defines XML entities, which no picture of fedrepro does, so it is not read")
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError) as error:
        raise UserError(f"{path}: is a damaged SVG file ({error})") from None
    return [field.text or "" for field in root.iter() if field.tag.rpartition("}")[2] == FIELDS["svg"].lower()]


def states(facts: Mapping[str, Any], results: Path) -> dict[str, str]:
    """Return, for the spec and each file of results, whether a picture was drawn from the one at hand: its outcome."""
    here = _spec_at_hand(facts)
    states = {"spec": _state(facts["spec_sha256"], _hash(here) if here else "")}
    drawn = facts.get("drawn_sha256")
    if here and drawn and states["spec"] == CHANGED and _drawn(here, facts["tier"]) == drawn:
        states["spec"] = UNDRAWN
    now = _contents(_base(facts, results), "times_sha256" in facts)
    for key in ("results_sha256", "points_sha256", "times_sha256"):
        if key in facts or key in now:
            states[key.removesuffix("_sha256")] = _state(facts.get(key, ""), now.get(key, ""))
    return states


def stale(facts: Mapping[str, Any], results: Path) -> tuple[str, ...]:
    """Return what has changed since the results at hand, of which a picture was drawn, were computed."""
    return staleness.at(_base(facts, results))


def _base(facts: Mapping[str, Any], results: Path) -> Path:
    """Return the path of the results at hand, without suffix."""
    paper, _, name = facts["figure"].partition("/")
    spec = project() / facts["spec"]
    return place(results, facts["tier"], paper, name, facts.get("sets", ()), spec if spec.is_file() else "")


def _state(then: str, now: str) -> str:
    return ABSENT if not now else SAME if now == then else CHANGED


def _spec_at_hand(facts: Mapping[str, Any]) -> Path | None:
    """Return the spec with that path or name; None if there is none."""
    own = project() / facts["spec"]
    try:
        return own if own.is_file() else find_spec(facts["figure"])
    except UserError:
        return None
