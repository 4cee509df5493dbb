"""TCGA pan-cancer gene expression and the samples' cancer types (UCSC Xena, PanCanAtlas hub)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from fedrepro.data.formats.npy_parts import Writer
from fedrepro.data.formats.trees import Entry
from fedrepro.data.source import FileSource, Findings, Remote
from fedrepro.errors import UserError

GENES, SAMPLES = 20_531, 11_069
MATRIX = "EB++AdjustPANCAN_IlluminaHiSeq_RNASeqV2.geneExp.xena"
PHENOTYPE = "TCGA_phenotype_denseDataOnlyDownload.tsv"
HUBS = (
    "https://tcga-pancan-atlas-hub.s3.us-east-1.amazonaws.com/download/",
    "https://pancanatlas.xenahubs.net/download/",
)
FILE = re.compile(rf"(?i)(?:^|/)(?:eb(?:\+|%2B){{2}}adjustpancan[^/]*|{re.escape(PHENOTYPE)})$")
LIMIT = 8_000_000_000


def _parse(entries: Iterator[Entry], out: Writer) -> Findings:
    samples: list[str] | None = None
    diseases: dict[str, str] | None = None
    genes = 0
    for entry in entries:
        if entry.name.lower() == PHENOTYPE.lower():
            diseases = _diseases(entry)
        else:
            samples, genes = _matrix(entry, out)
    if samples is None or diseases is None:
        missing = "expression matrix" if samples is None else f"table of cancer types {PHENOTYPE}"
        raise UserError(f"the {missing} is missing; both files are needed")
    known = [diseases.get(sample, "") for sample in samples]
    if not any(known):
        raise UserError("no sample of the matrix has a cancer type in the table")
    out.save("all", "samples", np.array([s.encode() for s in samples]))
    out.save("all", "diseases", np.array([d.encode() for d in known]))
    findings = Findings()
    if (genes, len(samples)) != (GENES, SAMPLES):
        findings.differs.append(f"{genes:,} genes of {len(samples):,} samples instead of 20,531 of 11,069")
    return findings


def _diseases(entry: Entry) -> dict[str, str]:
    lines = entry.text()
    names = lines.readline().rstrip("\n").split("\t")
    if "sample" not in names or "_primary_disease" not in names:
        raise UserError(f"{entry.name} has no columns 'sample' and '_primary_disease'")
    key, value = names.index("sample"), names.index("_primary_disease")
    rows = (line.rstrip("\n").split("\t") for line in lines)
    return {row[key]: row[value].strip() for row in rows if len(row) > max(key, value)}


def _matrix(entry: Entry, out: Writer) -> tuple[list[str], int]:
    """Genes in rows, samples in columns; written gene by gene as float32, missing values as NaN."""
    samples = entry.stream.readline().decode("utf-8", "replace").rstrip("\r\n").split("\t")[1:]
    if not samples or len(set(samples)) != len(samples):
        raise UserError(f"{entry.name}: its first line does not name distinct samples")
    names: list[bytes] = []
    rows: list[np.ndarray] = []
    for number, line in enumerate(entry.stream, start=2):
        name, _, values = line.rstrip(b"\r\n").partition(b"\t")
        names.append(name)
        rows.append(_numbers(entry.name, number, values, len(samples)))
    if not rows:
        raise UserError(f"{entry.name} contains no genes")
    matrix = out.create("all", "expression", (len(rows), len(samples)), np.float32)
    for i, row in enumerate(rows):
        matrix[i] = row
    out.save("all", "genes", np.array(names))
    return samples, len(names)


def _numbers(name: str, line: int, values: bytes, count: int) -> np.ndarray:
    fields = values.split(b"\t")
    try:
        if len(fields) != count:
            raise ValueError(f"{len(fields)} values")
        row = np.array([b"nan" if field in (b"", b"NA", b"NaN") else field for field in fields]).astype(np.float32)
    except ValueError as error:
        raise UserError(f"{name}, line {line:,}: {count:,} numbers are expected ({error})") from error
    return row


SOURCES = (
    FileSource(
        name="tcga",
        title="TCGA pan-cancer gene expression",
        homepage="https://xenabrowser.net/datapages/?hub=https://pancanatlas.xenahubs.net:443",
        licence="TCGA open access; see the GDC data use policies",
        files=(
            Remote(f"{MATRIX}.gz", tuple(f"{hub}{MATRIX.replace('+', '%2B')}.gz" for hub in HUBS)),
            Remote(f"{PHENOTYPE}.gz", tuple(f"{hub}{PHENOTYPE}.gz" for hub in HUBS)),
        ),
        pattern=FILE,
        parse=_parse,
        layouts=f"a folder with {MATRIX}.gz and {PHENOTYPE}.gz",
        limit=LIMIT,
    ),
)
