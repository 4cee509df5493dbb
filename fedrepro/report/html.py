"""The report as one HTML page: no file beside it, nothing from the network, readable without its script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import numpy as np

from fedrepro import claims, registry
from fedrepro.plotting.face import footer, tags
from fedrepro.report import ledger, pictures, style
from fedrepro.report.effects import Measured
from fedrepro.report.gather import VERDICTS, Report, Section

BEYOND = "Beyond the papers"
PROMISES = {
    claims.REPRODUCED: "the 95 % interval of the margin lies above zero",
    claims.NOT_REPRODUCED: "it lies below zero",
    claims.NOISE: "it contains zero",
    claims.NOT_TESTED: "smaller tier, stand-in or variant data, missing trials",
}


ALONE = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What the page may load, enforced by the browser: nothing that is not in it."""

SHORT = {
    claims.REPRODUCED: "held",
    claims.NOT_REPRODUCED: "failed",
    claims.NOISE: "noise",
    claims.NOT_TESTED: "open",
}
"""The heads of narrow tables."""


def page(report: Report, drawn: Mapping[str, Mapping[str, str]]) -> str:
    """The whole page. ``drawn``: for each section's name the HTML of its panels by id."""
    body = [
        _head(report),
        _overview(report),
        _all_claims(report),
        *_papers(report, drawn),
        _ledger(report),
        f"<footer>{_made(report)}</footer>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{ALONE}">\n'
        f"<title>fedrepro: which claims held</title>\n<style>{style.CSS}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + f"\n<script>{style.SCRIPT}</script>\n</body>\n</html>\n"
    )


def draw(section: Section) -> dict[str, str]:
    """The HTML of every panel of a section."""
    if section.source is None:
        return {}
    return {p.id: pictures.panel(section.source, p, f"{_anchor(section)}-{p.id}") for p in section.figure.panels}


def _anchor(section: Section) -> str:
    return section.name.replace("/", "-")


def _slug(verdict: str) -> str:
    return verdict.replace(" ", "-")


def _chip(verdict: str) -> str:
    return f'<span class="chip {_slug(verdict)}">{verdict}</span>'


def _caveats(section: Section) -> str:
    found = tags(section.source) if section.source else []
    found += ["STALE"] if section.stale else []
    return " ".join(f'<span class="chip caveat">{escape(tag)}</span>' for tag in found)


# -- top ---------------------------------------------------------------------------------------------------------------


def _head(report: Report) -> str:
    rows = [row for section in report.sections for row in section.claims]
    seen = f";<br>there {_seen(rows)}" if _seen(rows) else ""
    counts = "".join(
        f'<li class="{_slug(v)}"><b>{report.count(v)}</b>{v}<br><small>{PROMISES[v]}{seen if v == VERDICTS[-1] else ""}'
        "</small></li>"
        for v in VERDICTS
    )
    return (
        "<header><h1>Did it hold? Five papers, figure by figure</h1>"
        "<p>Every claim below is a check written before the runs. It is evaluated over trials; the methods of a trial "
        "share data, initial point and client draws, so that their differences are paired. Only the papers' own sizes "
        "on their own data, with all trials, can say <em>reproduced</em>. The counts include our own "
        "experiments beyond the papers.</p>"
        '<nav><a href="#overview">Overview</a><a href="#claims">Claims</a>'
        + "".join(f'<a href="#{key}">{key}</a>' for key in _keys(report))
        + '<a href="#ledger">Discrepancies</a></nav>'
        f'<ul class="counts">{counts}</ul></header>'
    )


def _keys(report: Report) -> list[str]:
    """The papers in their order, then everything else."""
    present = {s.figure.paper for s in report.sections}
    return [*(key for key in registry.PAPERS if key in present), *sorted(present - set(registry.PAPERS))]


def _named(key: str) -> str:
    return registry.PAPERS.get(key, BEYOND if key == "beyond" else key)


def _overview(report: Report) -> str:
    heads = "".join(
        f'<th class="n" scope=col><span class=extra>{v}</span><span class=short>{SHORT[v]}</span></th>'
        for v in VERDICTS
    )
    rows = []
    for key in _keys(report):
        rows.append(f'<tr class="paper"><th colspan=9 scope=rowgroup>{escape(_named(key))}</th></tr>')
        rows += [_line(section) for section in report.sections if section.figure.paper == key]
    return (
        '<section id="overview"><h2>Overview</h2><div class="scroll"><table class="overview"><thead><tr>'
        f"<th scope=col>figure</th><th class=extra scope=col></th><th scope=col>tier</th>{heads}"
        "<th class=extra scope=col>seen there</th><th class=extra scope=col></th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _seen(rows: Iterable[claims.Row]) -> str:
    """What the claims that count as not tested show at the tier, and on the data, that there are."""
    found = [row.found for row in rows if row.verdict == claims.NOT_TESTED]
    words = {"holds": "hold", "fails": "fail", claims.NOISE: "within noise"}
    return ", ".join(f"{found.count(name)} {word}" for name, word in words.items() if name in found)


def _line(section: Section) -> str:
    counts = "".join(
        f'<td class="n {_slug(v) if n else "zero"}">{n or "·"}</td>' for v in VERDICTS for n in [section.count(v)]
    )
    tier = section.figure.tier if section.source else "no results"
    return (
        f'<tr><td><a href="#{_anchor(section)}">{section.figure.figure}</a></td>'
        f"<td class=extra>{escape(section.figure.title)}</td><td>{tier}</td>{counts}"
        f"<td class=extra><small>{_seen(section.claims)}</small></td><td class=extra>{_caveats(section)}</td></tr>"
    )


def _all_claims(report: Report) -> str:
    buttons = "".join(
        f'<button type=button value="{value}" aria-pressed="{pressed}">{text}</button>'
        for value, text, pressed in [("", "all", "true"), *((_slug(v), v, "false") for v in VERDICTS)]
    )
    items = "".join(
        _claim(row, f'<a href="#{_anchor(section)}">{section.name}</a>')
        for key in _keys(report)
        for section in report.sections
        if section.figure.paper == key
        for row in section.claims
    )
    return (
        f'<section id="claims"><h2>Claims</h2><div class="filters" hidden>{buttons}</div>'
        f'<ol class="claims">{items}</ol></section>'
    )


def _claim(row: claims.Row, where: str, check: bool = False) -> str:
    detail = f"<details><summary>check</summary><pre>{escape(row.check)}</pre></details>" if check else ""
    return (
        f'<li data-verdict="{_slug(row.verdict)}"><div>{_chip(row.verdict)}</div><div><p>{escape(row.says)}</p><p>'
        f'<span class="id">{escape(row.id)} · {where}</span><br><small>{escape(row.why)}</small></p>{detail}</div></li>'
    )


# -- figures -----------------------------------------------------------------------------------------------------------


def _papers(report: Report, drawn: Mapping[str, Mapping[str, str]]) -> Iterable[str]:
    for key in _keys(report):
        figures = "\n".join(
            _figure(report, section, drawn.get(section.name, {}))
            for section in report.sections
            if section.figure.paper == key
        )
        yield f'<section id="{key}"><h2>{escape(_named(key))}</h2>{figures}</section>'


def _figure(report: Report, section: Section, drawn: Mapping[str, str]) -> str:
    figure = section.figure
    parts = [
        f'<article id="{_anchor(section)}"><h3>{section.name}: {escape(figure.title)}</h3>',
        f'<p class="faint">{escape(figure.source)}</p><p>{_caveats(section)}</p>',
        *(f'<p class="notice">Stale: {escape(why)}.</p>' for why in section.stale),
        *(f'<p class="notice">Not checked: {escape(why)}.</p>' for why in section.unchecked),
        f"<p>{escape(figure.note)}</p>" if figure.note else "",
    ]
    if section.source is None:
        parts.append(f"<p>No results. {_other_tiers(section)}</p>")
    else:
        parts.append(_panels(section, drawn))
        if not any("</svg>" in text for text in drawn.values()):  # pictures say it themselves
            parts.append(f"<p><small>{escape(footer(section.source, ()))}</small></p>")
    if section.claims:
        parts.append("<h4>Claims</h4>" + _claims(section))
    parts += [_published(section), _touching(report, section), _provenance(section)]
    command = f"fedrepro run {section.path} --tier {figure.tier}" + _sets(section)
    parts.append(
        f"<h4>To regenerate</h4><pre>{escape(command)}\nfedrepro plot {section.path} --tier {figure.tier}</pre>"
    )
    return "\n".join(p for p in parts if p) + "</article>"


def _other_tiers(section: Section) -> str:
    return f"There are some at the tier {' and '.join(section.tiers)}." if section.tiers else ""


def _sets(section: Section) -> str:
    sidecar = section.source.sidecar if section.source else {}
    stand_in = " --stand-in" if sidecar.get("stand_ins") else ""
    return stand_in + "".join(f" --set '{item}'" for item in sidecar.get("sets", ()))


def _panels(section: Section, drawn: Mapping[str, str]) -> str:
    wide = {p.id for p in section.figure.panels if p.kind in ("table", "scatter")}
    cells = "".join(f"<div{' class=wide' if name in wide else ''}>{text}</div>" for name, text in drawn.items())
    return f'<div class="panels">{cells}</div>'


def _claims(section: Section) -> str:
    return f'<ol class="claims">{"".join(_claim(row, escape(row.where), True) for row in section.claims)}</ol>'


def _published(section: Section) -> str:
    if not section.published:
        return ""
    rows = []
    for item in section.published:
        x = "end" if item.x is None else f"{item.x:g}"
        ours = "none there" if np.isnan(item.ours) else f"{item.ours:.4g}"
        off = f"{100 * (item.ours / item.value - 1):+.0f} %" if item.value and np.isfinite(item.ours) else ""
        cells = (item.panel, item.label, x, f"{item.value:.4g}", ours, off, item.curve)
        rows.append("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>")
    heads = ("panel", "published", "x", "paper", "ours", "off by", "nearest curve of ours")
    return (
        '<h4>Published numbers</h4><div class="scroll"><table><thead><tr>'
        + "".join(f"<th scope=col>{h}</th>" for h in heads)
        + f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _touching(report: Report, section: Section) -> str:
    rows = report.touching(section.name)
    if not rows:
        return ""
    links = ", ".join(f'<a href="#{_entry(row)}">{escape(row.topic)}</a>' for row in rows)
    return f'<h4>Discrepancies that touch it</h4><p class="faint">{links}</p>'


def _provenance(section: Section) -> str:
    if section.source is None:
        return ""
    sidecar = section.source.sidecar
    made: Mapping[str, Any] = sidecar.get("provenance", {})
    dirty = {True: ", with uncommitted changes", False: "", None: ""}[made.get("dirty")]
    libraries = ", ".join(f"{k} {v}" for k, v in made.get("libraries", {}).items())
    data = "; ".join(
        dict.fromkeys(
            f"{d['dataset']} ({d['state']}) {d['fingerprint'][:16]}{': ' + d['note'] if d.get('note') else ''}"
            for d in sidecar.get("datasets", ())
        )
    )
    facts = {
        "commit": f"{made.get('commit', 'unknown')[:12]}{dirty}",
        "data": data,
        "versions": f"fedrepro {made.get('fedrepro', '?')}, Python {made.get('python', '?')}, {libraries}",
        "machine": made.get("machine", ""),
        "seconds": f"{sidecar.get('seconds', 0):,.1f} of computing, one core",
        "trials": f"{sidecar.get('trials_done', 0)} of {sidecar.get('trials_wanted', 0)}",
        "results": f"sha256 {sidecar.get('csv_sha256', '')[:16]}, written {made.get('written', '')}",
        "diverged": _runs(sidecar.get("diverged", ())),
        "failed": _runs(sidecar.get("failed", ())),
        "missing": "; ".join(sidecar.get("missing", ())),
    }
    rows = "".join(f"<dt>{k}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items() if v)
    return f"<details><summary>Where these numbers come from</summary><dl>{rows}</dl></details>"


def _runs(found: Iterable[Mapping[str, Any]]) -> str:
    return "; ".join(f"{run['series']}, trial {run['trial']} ({run['why']})" for run in found)


# -- ledger ------------------------------------------------------------------------------------------------------------


def _entry(row: ledger.Row) -> str:
    return f"ledger-{row.id}"


def _ledger(report: Report) -> str:
    parts = [
        '<section id="ledger"><h2>Discrepancies</h2><p>Where a paper is silent, contradicts itself or differs from its '
        "released program: the reading taken here, how to run the other one, and what the choice changes.</p>"
    ]
    names = {section.name for section in report.sections}
    for key in dict.fromkeys(row.paper for row in report.ledger):
        parts.append(f'<h3 id="ledger-{key}">{escape(_named(key))}</h3>')
        parts += [_row(row, report.effects.get(row.id, ()), names) for row in report.ledger if row.paper == key]
    return "\n".join(parts) + "</section>"


def _row(row: ledger.Row, effects: Iterable[Measured], names: set[str]) -> str:
    other = "; ".join(f"<code>{escape(str(v))}</code>" for v in row.variants) or f"none: {escape(row.no_variant)}"
    measured = "<br>".join(f"{escape(e.words)} <small>({_link(e.figure, names)}, {e.tier})</small>" for e in effects)
    facts = {
        "paper": escape(row.says),
        "released program": escape(row.code),
        "taken here": escape(row.taken),
        "other reading": other + (f"<pre>{escape(row.command)}</pre>" if row.command else ""),
        "effect": measured or ("not measured: no results yet" if row.effects else ""),
        "note": escape(row.note),
        "figures": " ".join(_link(name, names) for name in row.figures),
    }
    lines = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts.items() if text)
    return (
        f'<div class="entry" id="{_entry(row)}"><h4>{escape(row.topic[:1].upper() + row.topic[1:])} '
        f'<span class="id">{escape(row.id)}</span></h4><dl>{lines}</dl></div>'
    )


def _link(name: str, names: set[str]) -> str:
    return f'<a href="#{name.replace("/", "-")}">{name}</a>' if name in names else name


def _made(report: Report) -> str:
    from fedrepro.results import provenance

    made = provenance()
    dirty = " with uncommitted changes" if made["dirty"] else ""
    stale = sum(bool(section.stale) for section in report.sections)
    made_by = f"fedrepro {made['fedrepro']}, commit {made['commit'][:12]}{dirty}"
    return f"{made_by}; {stale} of {len(report.sections)} figures stale."
