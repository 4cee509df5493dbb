"""Write figures for a paper or another program: pictures, numbers, LaTeX tables, captions, and the references."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedrepro import processes
from fedrepro.files import atomically
from fedrepro.plotting import naming
from fedrepro.plotting.figure import bare_title, build_from, panel_notes, panel_title, prepare, save
from fedrepro.plotting.header_footer import caption, in_sentences
from fedrepro.plotting.provenance import record
from fedrepro.plotting.series import FigureData
from fedrepro.progress import Progress
from fedrepro.report import end_values, table_formats
from fedrepro.results import data_dictionary, frame
from fedrepro.results.consistency import recorded
from fedrepro.results.read import has_results, largest_tier
from fedrepro.spec import nodes
from fedrepro.spec.bibliography import cited
from fedrepro.spec.find import stored_under

REFERENCES = "references.bib"


@dataclass(frozen=True)
class ExportOptions:
    """What is written of each figure.

    tier : a tier, or ``best`` for the largest that has results. root : folder of the results. formats : of pictures.
    bold : print the best values of tables in bold. published : with the paper's numbers in tables. data : also write
    every measurement, and the meaning of its columns.
    """

    tier: str
    root: Path
    formats: tuple[str, ...] = ("pdf",)
    bold: bool = False
    published: bool = True
    data: bool = False


def figures(paths: Iterable[Path], folder: Path, options: ExportOptions, jobs: int = 1) -> Iterator[Path]:
    """Write the figures that have results, ``jobs`` at a time, and ``references.bib``; yield the files."""
    tiers = {path: largest_tier(path, options.tier, options.root) for path in paths}
    wanted = [path for path, tier in tiers.items() if has_results(path, tier, options.root)]
    with Progress("figures", len(wanted)) as progress:
        one_figure = functools.partial(_figure, folder=folder, options=options)
        for path, files in zip(wanted, processes.parallel_map(one_figure, wanted, jobs), strict=True):
            progress.step(f"{path.parent.name}/{path.stem}")
            yield from files
    if wanted:
        text = cited({stored_under(nodes.read(path))[0] for path in wanted})
        yield from _written(folder / REFERENCES, f"{text}\n")


def _figure(path: Path, folder: Path, options: ExportOptions) -> list[Path]:
    tier = largest_tier(path, options.tier, options.root)
    source = FigureData.read(path, tier, options.root)
    figure = source.figure
    stem = folder / figure.paper / figure.figure
    tables = list(end_values.panels(source, bold=options.bold, published=options.published))
    numbers = [row for panel, _ in tables for row in end_values.numbers(source, panel)]
    files = save(build_from(source), stem, options.formats, record(figure, source.sidecar, options.root))
    files += _written(stem.with_name(f"{stem.name}.csv"), table_formats.numbers_csv(numbers))
    files += _written(
        stem.with_name(f"{stem.name}.tex"),
        table_formats.as_latex(tables, caption(source), f"{figure.paper}/{figure.figure}"),
    )
    files += _written(stem.with_name(f"{stem.name}.caption.txt"), f"{_caption(source)}\n")
    if options.data:
        table = frame.of_figure(figure, source.frame, source.sidecar)
        files += _written(stem.with_name(f"{stem.name}.data.csv"), table.to_csv(index=False, lineterminator="\n"))
        columns = data_dictionary.of_table(source.sidecar.settings or map(recorded, figure.settings()))
        text = table_formats.csv_text([("column", "meaning"), *columns.items()])
        files += _written(stem.with_name(f"{stem.name}.columns.csv"), text)
    return files


def _written(path: Path, text: str) -> Sequence[Path]:
    atomically(path, text.encode())
    return [path]


def _caption(source: FigureData) -> str:
    """Return one paragraph: the figure and its panels, the state of its results, notes and footer."""
    panels = source.figure.panels
    titled = len(panels) > 1 and any(bare_title(source, panel) for panel in panels)
    named = [panel_title(source, place) for place in range(len(panels))] if titled else []
    notes = panel_notes(source, [prepare(panel, source) for panel in panels])
    parts = (source.figure.title, source.figure.source, "; ".join(named))
    sentences = [*parts, *in_sentences(source, notes, "; ")]
    return " ".join(f"{naming.plain(naming.symbols(part.strip().rstrip('.')))}." for part in sentences if part)
