"""The commands ``report``, ``compare`` and ``show``."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import click

from fedrepro.cli import colour, listing
from fedrepro.cli.options import (
    Whole,
    complete_panel,
    complete_spec,
    evidence_option,
    largest_tier_option,
    results_option,
    set_option,
    with_sizes,
)
from fedrepro.errors import UserError
from fedrepro.spec.find import experiments, find_panel, project

COLOURS = {"moved": "red", "differs": "yellow", "same": "green", "within noise": "green"}
FAILURES = ("not-reproduced", "text-against-figure", "within-noise", "fails", "undecided", "not-tested", "stale")


@click.command()
@click.argument("specs", nargs=-1, metavar="[FIGURE|PAPER...]", shell_complete=complete_spec)
@evidence_option("report")
@results_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=lambda: project() / "plots",
    show_default="plots of the project",
    help="Where to write the folder report and REPORT.md.",
)
@click.option(
    "--single",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write all pages as one file, to send.",
)
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice(FAILURES),
    help="Exit with code 1 if a claim has this verdict, or if a result is stale.",
)
@click.option("--no-pictures", is_flag=True, help="Leave out the pictures, which saves time.")
@click.option("--jobs", "-j", type=Whole(min=1), help="Processes that draw (default: all cores).")
def report(
    specs: tuple[str, ...],
    tier: str,
    results_dir: Path,
    out: Path,
    single: Path | None,
    fail_on: tuple[str, ...],
    no_pictures: bool,
    jobs: int | None,
) -> None:
    """Write the report: which claims hold and why, figure by figure, and the discrepancies.

    The report is a folder of pages, which opens from disk (report/index.html) and can be copied to any web server,
    and the file REPORT.md. With --single the pages are also written as one file, without downloads and interactive
    pictures. Without a name, the report contains every figure. Nothing is computed; figures without results and stale
    results are marked.

    \b
    Examples:
      fedrepro report
      fedrepro report --tier quick --out /tmp/report
      fedrepro report --single report.html
      fedrepro report --fail-on not-reproduced --fail-on stale
      fedrepro report fedc/fig5 --no-pictures
    """
    from fedrepro.claims import distinct
    from fedrepro.files import atomically, require_writable
    from fedrepro.report import gather_contents, markdown, page_data, single_file, site
    from fedrepro.results import everything
    from fedrepro.runs.runner import default_jobs
    from fedrepro.runs.storage.write import made

    paths = everything.paths(specs, results_dir)
    for place in (out / "REPORT.md", *([] if single is None else [single])):
        require_writable(place)
    content, prepared = page_data.figures(
        paths, tier, results_dir, experiments(), not no_pictures, jobs or default_jobs()
    )
    pages = site.Site(content, prepared, experiments(), made())
    files = pages.build()
    site.write(out / "report", files)
    click.echo(f"{out / 'report' / 'index.html'} ({len(files)} files, {sum(map(len, files.values())) / 1e6:.1f} MB)")
    texts = {out / "REPORT.md": markdown.text(content, out)}
    if single is not None:
        texts[single] = single_file.page(pages)
    for path, text in texts.items():
        atomically(path, text.encode())
        click.echo(f"{path} ({len(text.encode()) / 1e6:.1f} MB)")
    if not no_pictures and not site.library():
        click.echo(f"its pictures are not interactive, because a library is missing: {site.LIBRARY_EXTRA}")
    click.echo(
        "; ".join([*(f"{content.count(v)} {v}" for v in gather_contents.VERDICTS), distinct.in_words(content.rows)])
    )
    bad = {v.replace(" ", "-"): content.count(v) for v in gather_contents.VERDICTS}
    bad["stale"] = content.stale
    broken = [f"{bad[name]} {name}" for name in dict.fromkeys(fail_on) if bad[name]]
    if broken:
        click.secho(f"--fail-on: {', '.join(broken)}", fg="red", err=True)
        for section in content.sections if "stale" in fail_on else ():
            for reason in section.stale:
                click.secho(f"  stale: {section.name}: {reason}", fg="red", err=True)
        sys.exit(1)


@click.command()
@click.argument("a", metavar="A", type=click.Path(path_type=Path))
@click.argument("b", metavar="B", type=click.Path(path_type=Path))
@click.option("--metric", help="Compare only this metric (default: all recorded metrics).")
@click.option("--all", "every", is_flag=True, help="Also list the curves that did not move.")
@click.option(
    "--check",
    is_flag=True,
    help="Exit with code 1 if a curve moved, has no counterpart, or has more rounds or trials on one side.",
)
@click.option(
    "--html",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write pages to this folder, with curves that moved, verdicts and pictures.",
)
def compare(a: Path, b: Path, metric: str | None, every: bool, check: bool, folder: Path | None) -> None:
    """Print which curves differ between two sets of results, beyond the noise of their trials.

    A and B are two results files of one figure, or two folders of them, whose common figures are compared.
    `fedrepro duel A B` compares two methods.

    Trials with the same number are paired; a curve moved if the interval of the mean difference (95 % jointly over up
    to ten rounds) excludes zero. Columns: curve, metric, end value in A and B, difference B - A with its interval.

    \b
    Examples:
      fedrepro run fedc/fig5 --set problem.w_min=0 --results results-other
      fedrepro compare results/quick results-other/set/problem.w_min=0/quick
      fedrepro compare old.csv new.csv --metric objective --all
      fedrepro compare results/quick results-other/set/problem.w_min=0/quick --html compared
    """
    from fedrepro.report import compare as comparing
    from fedrepro.report import compare_pages, site

    compared = compare_pages.sets(a, b, metric)
    for pair in compared.figures:
        rows = comparing.lines(pair.changes, every)
        if len(compared.figures) > 1 and rows:
            click.secho(pair.name, bold=True)
        for row, line in zip(rows, listing.aligned(rows), strict=True):
            click.secho(line, fg=COLOURS.get(row[0], "yellow"))
    for side, names in (("A", compared.only_a), ("B", compared.only_b)):
        if names:
            click.echo(f"only in {side}: {', '.join(names)}")
    if folder is not None:
        site.write(folder, compare_pages.page(a, b, compared))
        click.echo(folder / "index.html")
    parts = list(dict.fromkeys(change.part for change in compared.changes if change.part))
    for part in parts:
        click.secho(f"compared {part}{'; so --check fails' if check else ''}", fg="yellow")
    states = [change.state for change in compared.changes]
    click.echo("; ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states)) or "nothing to compare")
    if check and (parts or set(states) - {comparing.SAME, comparing.NOISE}):
        sys.exit(1)


@click.command()
@click.argument("figure", metavar="FIGURE|CLAIM", shell_complete=complete_spec)
@largest_tier_option("results")
@click.option("--panel", shell_complete=complete_panel, help="Show only one panel.")
@click.option("--at", type=Whole(min=0), metavar="ROUND", help="Read the curves at this round.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "csv", "md", "latex", "json"]),
    default="text",
    show_default=True,
    help="latex: tables for the package booktabs.",
)
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--bold", is_flag=True, help="Print the best values in bold (latex and md).")
@click.option("--no-published", is_flag=True, help="Leave out the paper's numbers in tables (text, latex and md).")
@click.option("--trials", type=Whole(min=1), help="Read only the first trials; the same as --set trials=N.")
@set_option
@results_option
def show(
    figure: str,
    tier: str,
    panel: str | None,
    at: int | None,
    form: str,
    as_json: bool,
    bold: bool,
    no_published: bool,
    trials: int | None,
    sets: tuple[str, ...],
    results_dir: Path,
) -> None:
    """Print the end values of a figure's panels: mean and spread over trials, rounds and numbers sent up.

    Panels that show the same curves over another x axis have one table in the format `text`. With `csv` or `json`,
    each curve or cell of a table is a row of plain numbers in full precision.

    \b
    Examples:
      fedrepro show fedc/fig5
      fedrepro show fedmf/table1 --tier paper --format latex --bold --no-published
      fedrepro show fedc/fig5 --panel a --at 50
    """
    from fedrepro.plotting.header_footer import footer, in_sentences, tags
    from fedrepro.plotting.series import FigureData
    from fedrepro.report import end_values, table_formats
    from fedrepro.results import missing, staleness
    from fedrepro.results.read import largest_tier

    if as_json and form not in ("text", "json"):
        raise UserError(f"--json is short for --format json, and you also ask for {form}")
    form = "json" if as_json else form
    if bold and form not in ("latex", "md"):
        raise UserError(f"--bold needs --format latex or md; {form} has no bold letters")
    sets = with_sizes(sets, trials, None)
    path, panel = find_panel(figure, panel)
    missing.require(path, tier, results_dir, sets)
    source = FigureData.read(path, largest_tier(path, tier, results_dir, sets), results_dir, sets)
    name, caveats = source.figure.name, " · ".join(tags(source))
    if at is not None:
        end_values.check_round(source, panel, at)
    caption = " ".join(f"{name}: {'. '.join(in_sentences(source, (), ' · '))}.".split())
    if form in ("csv", "json"):
        if source.stale:
            stale = {(name, source.figure.tier): source.stale}
            click.secho(staleness.in_words(stale), err=True, **colour.STYLES[colour.STALE])
        numbers = [(chosen, end_values.numbers(source, chosen, at)) for chosen in end_values.chosen(source, panel)]
        if form == "json":
            about = {"figure": name, "tier": source.figure.tier, "stale": list(source.stale), "caption": caption}
            click.echo(table_formats.numbers_json(numbers, about), nl=False)
        else:
            click.echo(table_formats.numbers_csv([row for _, rows in numbers for row in rows]), nl=False)
        return
    tables = list(end_values.panels(source, panel, at, bold=bold, published=not no_published))
    if form != "text":
        write = table_formats.FORMATS[form]
        if form == "latex":  # its labels name the figure
            write = functools.partial(table_formats.as_latex, figure=name)
        click.echo(write(tables, caption), nl=False)
        return
    click.secho(f"{name}: {source.figure.title}", bold=True)
    if caveats:
        click.secho(caveats, fg="yellow")
    for heading, lines in end_values.headed(tables):
        click.echo()
        click.secho(heading, bold=True)
        for line in listing.aligned(tuple(row) for row in lines):
            click.echo(f"  {line}")
    click.echo()
    for data, sizes in source.sidecar.sizes.items():
        if sizes:
            click.echo(f"data {data}: {', '.join(f'{key} = {value:,}' for key, value in sizes.items())}")
    click.echo(footer(source, ()))
