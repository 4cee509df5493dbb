"""The page's style sheet and the few lines of script it works without."""

CSS = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1b1d1f; --faint: #5b6167; --rule: #dcdfe2; --shade: #f4f5f6; --link: #0b5394;
  --good: #0a6b45; --bad: #a8320a; --noise: #7a5600; --open: #566069;
  --plot: "DejaVu Sans", Verdana, "Bitstream Vera Sans", sans-serif;
  --text: Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, serif;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181b; --ink: #e4e6e8; --faint: #a2a9b0; --rule: #343a40; --shade: #1e2226; --link: #86b9ee;
    --good: #57c99a; --bad: #f28b66; --noise: #dcb04e; --open: #a9b3bc;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1.5rem clamp(0.9rem, 4vw, 3rem) 4rem; max-width: 84rem;
  font: 1.0625rem/1.55 var(--text); color: var(--ink); background: var(--paper); overflow-wrap: break-word;
}
h1, h2, h3, h4, th, .chip, .counts, nav, button, summary, dt, .id, footer { font-family: var(--sans); }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.5rem 0 0.25rem; letter-spacing: -0.01em; }
h2 { font-size: 1.4rem; margin: 3.5rem 0 0.75rem; padding-top: 0.75rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1.15rem; line-height: 1.3; margin: 0 0 0.15rem; }
h4 { font-size: 0.95rem; margin: 1.5rem 0 0.4rem; }
p { margin: 0.4rem 0; max-width: 46rem; }
a { color: var(--link); text-decoration-thickness: 1px; text-underline-offset: 0.15em; }
small, .faint { color: var(--faint); font-size: 0.875rem; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 0.84rem; }
pre { background: var(--shade); padding: 0.55rem 0.75rem; border-radius: 4px; white-space: pre-wrap; margin: 0.4rem 0; }
nav { font-size: 0.9rem; } nav a { margin-right: 1rem; white-space: nowrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.92rem; }
th, td { text-align: left; padding: 0.3rem 0.7rem 0.3rem 0; vertical-align: top; border-bottom: 1px solid var(--rule); }
thead th { font-size: 0.8rem; font-weight: 600; color: var(--faint); border-bottom-color: var(--ink); }
td.n, th.n { text-align: right; } .short { display: none; }
td.zero { color: var(--rule); }
tr.paper th { padding-top: 1.1rem; font-size: 0.95rem; }
.overview { width: 100%; }
.overview td:first-child { white-space: nowrap; padding-right: 0.9rem; }
table.numbers th, table.numbers td { white-space: nowrap; } table.numbers small { display: block; }
.caption { font: 600 0.9rem/1.4 var(--sans); }
.chip {
  display: inline-block; font-size: 0.74rem; font-weight: 600; line-height: 1.5; padding: 0 0.5em; white-space: nowrap;
  border: 1px solid currentColor; border-radius: 3px; color: var(--open);
}
.reproduced { color: var(--good); } .not-reproduced { color: var(--bad); } .within-noise { color: var(--noise); }
.chip.caveat { color: #4d3300; background: #ffd98a; border-color: #d59a20; }
.counts { display: flex; flex-wrap: wrap; gap: 0.5rem 2.25rem; margin: 1.25rem 0 0.5rem; padding: 0; list-style: none; }
.counts b { display: block; font-size: 2rem; line-height: 1.1; font-variant-numeric: tabular-nums; }
article { margin: 2.25rem 0 3rem; }
.notice { border-left: 3px solid #d59a20; padding: 0.15rem 0 0.15rem 0.75rem; margin: 0.6rem 0; }
.panels {
  display: grid; gap: 1rem 1.5rem; margin: 0.9rem 0; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr));
}
.panels .wide { grid-column: 1 / -1; }
.picture { display: block; width: 100%; height: auto; }
img.picture { background: #fff; border-radius: 3px; }
svg.picture * { stroke-linejoin: round; stroke-linecap: butt; }
svg.picture text { fill: var(--ink); } svg.picture .tag text { fill: #2b1d00; }
svg.picture .curve:hover path { stroke-width: 3.2 !important; }
ol.claims { list-style: none; padding: 0; margin: 0.4rem 0; }
ol.claims > li {
  display: grid; grid-template-columns: 8.2rem 1fr; gap: 0 1rem; padding: 0.5rem 0; border-top: 1px solid var(--rule);
}
ol.claims p { margin: 0; max-width: 54rem; } .id { font-size: 0.8rem; color: var(--faint); }
details { margin: 0.35rem 0; } summary { cursor: pointer; font-size: 0.88rem; color: var(--faint); }
dl { display: grid; grid-template-columns: 9.5rem 1fr; gap: 0.25rem 1rem; margin: 0.35rem 0 0; font-size: 0.97rem; }
dt { font-size: 0.82rem; color: var(--faint); padding-top: 0.15rem; } dd { margin: 0; max-width: 54rem; }
.entry { padding: 0.7rem 0; border-top: 1px solid var(--rule); }
.entry h4 { margin: 0 0 0.2rem; }
:target { scroll-margin-top: 1rem; } .entry:target, ol.claims > li:target { background: var(--shade); }
.filters { display: flex; flex-wrap: wrap; gap: 0.4rem; margin: 0.75rem 0; }
.filters button {
  font-size: 0.85rem; padding: 0.25rem 0.7rem; border: 1px solid var(--rule); border-radius: 4px; cursor: pointer;
  background: var(--paper); color: var(--ink);
}
.filters button[aria-pressed="true"] { background: var(--ink); color: var(--paper); border-color: var(--ink); }
footer { margin-top: 4rem; font-size: 0.85rem; color: var(--faint); }
@media (max-width: 40rem) {
  body { font-size: 1rem; } h1 { font-size: 1.5rem; }
  ol.claims > li, dl { grid-template-columns: 1fr; } dd { margin-bottom: 0.35rem; }
  .overview .extra { display: none; } .short { display: inline; }
  tr.paper th { white-space: normal; }
  th, td { padding-right: 0.45rem; } .panels { margin-inline: -0.6rem; }
}
@media print {
  :root {
    color-scheme: light; --paper: #fff; --ink: #000; --faint: #444; --rule: #bbb; --shade: #f4f4f4; --link: #000;
    --good: #0a6b45; --bad: #a8320a; --noise: #7a5600; --open: #444;
  }
  html { font-size: 9pt; } body { font-size: 1rem; max-width: none; padding: 0; } nav, .filters { display: none; }
  .panels { grid-template-columns: 1fr 1fr; } .picture, .entry, ol.claims > li { break-inside: avoid; }
  h2 { break-before: page; } #overview h2, #claims h2 { break-before: auto; } h3, h4 { break-after: avoid; }
  a { text-decoration: none; }
}
"""

SCRIPT = """
(function () {
  var bar = document.querySelector('.filters');
  if (bar) {
    bar.hidden = false;
    bar.addEventListener('click', function (event) {
      var button = event.target.closest('button');
      if (!button) return;
      bar.querySelectorAll('button').forEach(function (b) { b.setAttribute('aria-pressed', String(b === button)); });
      document.querySelectorAll('#claims ol.claims > li').forEach(function (item) {
        item.hidden = Boolean(button.value) && item.dataset.verdict !== button.value;
        item.style.display = item.hidden ? 'none' : '';
      });
    });
  }
  window.addEventListener('beforeprint', function () {
    document.querySelectorAll('details').forEach(function (d) { d.open = true; });
  });
})();
"""
