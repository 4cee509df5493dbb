"""Receipts: small records of runs that were computed again on some machine, to be exchanged between people.

A receipt names runs by their identity, to which round they were computed and with what outcome, and the kind of program
and CPU. It names no person, machine or folder. Nobody signs a receipt: it shows that numbers travel between machines,
and never raises the level of evidence of a claim.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fedrepro.errors import UserError
from fedrepro.files import atomically
from fedrepro.results.checks import DIFFERENT, OUTCOMES, SAME, Finding
from fedrepro.results.schema import typed

VERSION = 1
FOLDER = "receipts"
"""The folder, next to the tiers, of the receipts that the project keeps."""

CPU_FACTS = ("vendor", "family", "model", "stepping")


@dataclass(frozen=True)
class Recomputed:
    """A run that was computed again up to ``round`` of ``rounds``, with its outcome (see ``results.checks``)."""

    run: str
    round: int
    rounds: int
    outcome: str

    @property
    def whole(self) -> bool:
        """Whether the run was computed to its last round."""
        return self.round >= self.rounds


@dataclass(frozen=True)
class Receipt:
    """Runs that one program computed again on one kind of CPU.

    code : a digest of the program. kernels : instruction level and BLAS. cpu : vendor, family, model, stepping and
    cache sizes. versions : of Python and the libraries. date : the day of the last comparison.
    """

    runs: tuple[Recomputed, ...] = ()
    code: str = ""
    kernels: Mapping[str, str] = field(default_factory=dict)
    cpu: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    date: str = ""

    @property
    def cpu_model(self) -> str:
        """Vendor, family, model and stepping in one line, '' if they are not known."""
        facts = [
            f"{name} {self.cpu[name]}" if name != "vendor" else self.cpu[name]
            for name in CPU_FACTS
            if self.cpu.get(name)
        ]
        return ", ".join(facts)

    def text(self) -> str:
        """Return the receipt as JSON."""
        return json.dumps({**dataclasses.asdict(self), "schema": VERSION}, indent=1, sort_keys=True) + "\n"


def recomputed(findings: Iterable[Finding]) -> tuple[Recomputed, ...]:
    """Return the compared runs of findings, each once, in the order of their identities."""
    runs: dict[str, Recomputed] = {}
    for finding in findings:
        for compared in finding.compared:
            run = finding.id(compared)
            runs[run] = _stronger(Recomputed(run, compared.round, compared.rounds, compared.outcome), runs.get(run))
    return tuple(runs[run] for run in sorted(runs))


def _stronger(record: Recomputed, other: Recomputed | None) -> Recomputed:
    """Return which of two records of a run on one CPU counts: the worse outcome, then the longer one."""
    if other is None:
        return record
    return max(record, other, key=lambda each: (OUTCOMES.index(each.outcome), each.round))


def read(path: Path) -> Receipt:
    """Return the receipt in a file. Raises UserError if it is not one."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(facts, Mapping) or facts.get("schema") != VERSION:
            raise ValueError(f"it has no key 'schema' of value {VERSION}")
        receipt: Receipt = typed(facts, Receipt, "")
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise UserError(f"{path}: not a receipt of `fedrepro check --receipt` ({error})") from None
    wrong = [run.outcome for run in receipt.runs if run.outcome not in OUTCOMES]
    if wrong:
        raise UserError(f"{path}: not a receipt of `fedrepro check --receipt` (unknown outcome '{wrong[0]}')")
    return receipt


def write(path: Path, receipt: Receipt) -> None:
    """Write a receipt to a file, atomically."""
    atomically(path, receipt.text().encode())


def folder(results: Path) -> Path:
    """Return the folder of kept receipts in a folder of results."""
    return results / FOLDER


def in_folder(path: Path) -> list[Receipt]:
    """Return all receipts of a folder, in the order of their names; none if there is no folder. Raises UserError."""
    return [read(file) for file in sorted(path.glob("*.json"))]


def file_name(receipt: Receipt) -> str:
    """Return a name for a kept receipt that depends on its content only."""
    return f"{receipt.date}-{hashlib.sha256(receipt.text().encode()).hexdigest()[:12]}.json"


@dataclass(frozen=True)
class Merged:
    """Receipts together, with one record for each run and CPU model; only those of runs in ``of``, if that is given."""

    records: Mapping[tuple[str, str], Recomputed]

    @classmethod
    def of(cls, receipts: Iterable[Receipt], runs: Iterable[str] | None = None) -> Merged:
        """Merge receipts, in any order and however often each is listed."""
        wanted = None if runs is None else set(runs)
        records: dict[tuple[str, str], Recomputed] = {}
        for receipt in receipts:
            for record in receipt.runs:
                if wanted is None or record.run in wanted:
                    key = (record.run, receipt.cpu_model or "unknown CPU")
                    records[key] = _stronger(record, records.get(key))
        return cls(records)

    @property
    def models(self) -> list[str]:
        """The CPU models, in alphabetical order."""
        return sorted({model for _, model in self.records})

    def on(self, model: str) -> Iterator[Recomputed]:
        """Yield the records of one CPU model."""
        yield from (record for (_, name), record in self.records.items() if name == model)

    @property
    def words(self) -> str:
        """The receipts in one phrase for a reader: ``recomputed on 3 CPU models, 214 runs to the end, same bits``."""
        if not self.records:
            return ""
        records = list(self.records.values())
        whole = len({run for (run, _), record in self.records.items() if record.whole})
        models = f"{len(self.models)} CPU model{'s' * (len(self.models) > 1)}"
        different = sum(record.outcome == DIFFERENT for record in records)
        same = all(record.outcome == SAME for record in records)
        outcome = f"different in {different}" if different else "same bits" if same else "same to 1e-10"
        return f"recomputed on {models}, {whole} run{'s' * (whole != 1)} to the end, {outcome}"
