"""CMS DE-SynPUF: synthetic Medicare claims; the outpatient claims of samples 1, 2 and 3."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from fedrepro.data.formats.npy_parts import Writer
from fedrepro.data.formats.trees import Entry
from fedrepro.data.source import FileSource, Findings, Remote
from fedrepro.errors import UserError

FILE = re.compile(r"outpatient_claims_sample_(\d+)[^/]*\.csv$", re.IGNORECASE)
SLOTS = 10  # the released code reads the first ten of the diagnosis (10) and of the procedure columns (45)
DIAGNOSES = [f"ICD9_DGNS_CD_{i}" for i in range(1, SLOTS + 1)]
PROCEDURES = [f"HCPCS_CD_{i}" for i in range(1, SLOTS + 1)]
FEWEST = 500_000  # claims of one sample, about 790,000 in the release
ADDRESS = (
    "https://www.cms.gov/research-statistics-data-and-systems/downloadable-public-use-files/synpufs/downloads/"
    "de1_0_2008_to_2010_outpatient_claims_sample_{}.zip"
)


def _parse(entries: Iterator[Entry], out: Writer) -> Findings:
    findings, samples = Findings(), []
    for entry in entries:
        match = FILE.search(entry.path)
        assert match is not None
        samples.append(int(match[1]))
        claims = _claims(entry)
        if len(claims) < FEWEST:
            findings.differs.append(f"sample {samples[-1]}: {len(claims):,} claims, about 790,000 are in the release")
        for name, columns in (("diagnosis", DIAGNOSES), ("procedure", PROCEDURES)):
            codes, incidence = _incidence(claims, columns)
            out.save(str(samples[-1]), f"{name}_codes", codes)
            out.save_sparse(str(samples[-1]), name, incidence)
    absent = [str(i) for i in (1, 2, 3) if i not in samples]
    findings.facts["notes"] = [f"without sample {', '.join(absent)}"] if absent else []
    return findings


def _claims(entry: Entry) -> Any:
    import pandas as pd

    try:
        claims = pd.read_csv(entry.stream, usecols=DIAGNOSES + PROCEDURES, dtype=str, keep_default_na=True)
    except ValueError as error:
        raise UserError(
            f"{entry.name} is not a table of outpatient claims with ICD9_DGNS_CD_1 ... and HCPCS_CD_1 ... ({error})"
        ) from error
    if not len(claims):
        raise UserError(f"{entry.name} contains no claims")
    return claims


def _incidence(claims: Any, columns: list[str]) -> tuple[np.ndarray, Any]:
    """The codes, sorted, and the matrix (claims x codes) with 1 where a claim contains a code in any column."""
    from scipy.sparse import csr_matrix

    values = claims[columns].to_numpy(dtype=object)
    row, column = np.nonzero(~claims[columns].isna().to_numpy())
    codes, index = np.unique(np.array([str(v).strip() for v in values[row, column]], dtype="S16"), return_inverse=True)
    pairs = np.unique(row * np.int64(max(1, len(codes))) + index)
    ones = np.ones(len(pairs), dtype=np.int8)
    return codes, csr_matrix((ones, np.divmod(pairs, max(1, len(codes)))), shape=(len(claims), len(codes)))


SOURCES = (
    FileSource(
        name="synpuf",
        title="CMS DE-SynPUF outpatient claims",
        homepage="https://www.cms.gov/data-research/statistics-trends-and-reports/medicare-claims-synthetic-public-use-files",
        licence="US government work, public domain",
        files=tuple(
            Remote(ADDRESS.rsplit("/", 1)[1].format(sample), (ADDRESS.format(sample),)) for sample in (1, 2, 3)
        ),
        pattern=FILE,
        parse=_parse,
        parts_by="samples",
        layouts="the three zips DE1_0_2008_to_2010_Outpatient_Claims_Sample_N, or their CSV files",
        limit=3_000_000_000,
    ),
)
