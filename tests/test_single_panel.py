"""A single panel, in a column and in the user's own axes, and the provenance of pictures."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from click.testing import Result
from matplotlib.text import Text
from PIL import Image

from fedrepro.errors import UserError
from fedrepro.plotting import draw_panel, header_footer, provenance, single_panel
from fedrepro.plotting.series import FigureData
from fedrepro.results.read import with_results
from fedrepro.results.schema import Content, Sidecar
from fedrepro.spec.find import specs

from .conftest import ROOT

Call = Callable[..., Result]
TABLE = "  t: {kind: table, options: {rows: algorithm, columns: Q2}, curves: [{algorithm: fedcavg, Q2: 5}]}\nclaims:"


@pytest.fixture
def done(fedrepro: Call, small: Path, tmp_path: Path) -> Path:
    """The small figure, computed, and the folder with its results."""
    small.write_text(small.read_text().replace("claims:", TABLE).replace('title: "left"', 'title: "left, Q1 = 2"'))
    ran = fedrepro("run", small, "--jobs", 1)
    assert ran.exit_code == 0, ran.output
    return tmp_path / "results"


def test_a_panel_has_the_caveats_of_its_own_data_and_no_others() -> None:
    stand_ins, datasets = ("a", "b"), (Content("a", "stand-in"), Content("b", "stand-in"), Content("c", "variant"))
    whole = Sidecar(figure="fedc/fig5", trials_done=2, stand_ins=stand_ins, datasets=datasets)
    for names in ({"a"}, {"c"}, {"b", "c"}, set[str]()):
        own = whole.only(names)
        assert set(own.stand_ins) == names & {"a", "b"}
        assert {content.dataset for content in own.datasets} == names
        assert dataclasses.replace(own, stand_ins=stand_ins, datasets=datasets) == whole


def kept() -> list[tuple[Path, str]]:
    """A panel of each kind with one pair of axes among the paper tier's results that are kept."""
    names = {"fedc/fig5": "c", "gcca/fig4": "a", "beyond/fedmc_sensitivity": "a"}
    return [(path, names[name]) for path in specs(ROOT / "experiments")
            if (name := f"{path.parent.name}/{path.stem}") in names]  # fmt: skip


def test_a_panel_with_another_name_is_found_by_the_letter_that_is_drawn(
    fedrepro: Call, small: Path, done: Path, tmp_path: Path
) -> None:
    small.write_text(small.read_text().replace("  b:", "  other:").replace("  t:", "  c:"))
    assert fedrepro("plot", small, "--panel", "b").exit_code == 0
    assert (tmp_path / "plots/quick/beyond/small.other.png").exists()
    assert "(other) left" in (shown := fedrepro("show", small, "--panel", "b").output)
    assert shown == fedrepro("show", small, "--panel", "other").output
    for command in ("plan", "run"):
        by_id, by_letter = (fedrepro(command, small, "--panel", name).output for name in ("other", "b"))
        assert by_id.split(", in ")[0] == by_letter.split(", in ")[0]
    for command in ("plan", "run", "plot", "show"):
        refused = fedrepro(command, small, "--panel", "x")
        assert refused.exit_code == 2
        assert "panel" in refused.output
        assert "(panels: a, other (b), c)" in refused.output


# In a column ----------------------------------------------------------------------------------------------------------


def test_a_panel_at_a_columns_width_has_no_title_and_a_caption(
    fedrepro: Call, small: Path, done: Path, tmp_path: Path
) -> None:
    drawn = fedrepro("plot", small, "--panel", "a", "--width", "3.4in")
    assert drawn.exit_code == 0, drawn.output
    folder = tmp_path / "plots" / "quick" / "beyond"
    assert sorted(path.name for path in folder.iterdir()) == ["small.a.caption.txt", "small.a.pdf", "small.a.png"]
    picture = Image.open(folder / "small.a.png")
    assert picture.width == round(3.4 * 300)
    said = (folder / "small.a.caption.txt").read_text()
    assert said.count("\n") == 1
    assert said.startswith("a small figure: (a) left, Q1 = 2. QUICK TIER. quick tier; ")
    assert "band: min–max" in said
    assert "$" not in said
    again = {path.name: path.read_bytes() for path in folder.iterdir()}
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 30, "axes.grid": False}):
        fedrepro("plot", small, "--panel", "a", "--width", "3.4in")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == again


def test_a_panel_without_a_title_has_no_letter_in_its_caption(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    small.write_text(small.read_text().replace('    title: "left"\n', ""))
    fedrepro("run", small, "--jobs", 1)
    fedrepro("plot", small, "--panel", "a", "--format", "png")
    said = (tmp_path / "plots" / "quick" / "beyond" / "small.a.caption.txt").read_text()
    assert said.startswith("a small figure. QUICK TIER. quick tier; ")


@pytest.mark.parametrize(("path", "panel"), kept(), ids=lambda p: getattr(p, "stem", p))
@pytest.mark.parametrize("inches", [2.6, 3.4])
def test_everything_in_a_column_fits_in_letters_of_8_points(path: Path, panel: str, inches: float) -> None:
    (results,) = with_results([path], "paper", ROOT / "results")
    source = FigureData(*results)
    room = single_panel.Room(inches, single_panel.SHAPE * inches, single_panel.LETTERS, single_panel.SMALLEST)
    prepared = single_panel._drawable(single_panel.named(source, panel), source, room)
    picture = single_panel._build(prepared, inches)
    picture.draw_without_rendering()  # a legend takes its place when it is drawn
    renderer = picture.canvas.get_renderer()  # type: ignore[attr-defined]
    size = picture.bbox
    texts = [t for t in picture.findobj(Text) if isinstance(t, Text) and t.get_text() and t.get_visible()]
    assert {t.get_fontsize() for t in texts} <= {8.0, 7.0}
    legend = [t for ax in picture.axes if ax.get_legend() for t in ax.get_legend().get_texts()]
    assert [t.get_text().replace("\n", " ") for t in legend] == [entry.label for entry in prepared.entries]
    for text in [*legend, *(ax.xaxis.label for ax in picture.axes), *(ax.yaxis.label for ax in picture.axes)]:
        box = text.get_window_extent(renderer)
        assert box.x0 >= -1, text.get_text()
        assert box.x1 <= size.x1 + 1, text.get_text()
        assert box.y0 >= -1, text.get_text()
        assert box.y1 <= size.y1 + 1, text.get_text()
    below = min(t.get_window_extent(renderer).y0 for t in legend)
    assert below < 0.2 * picture.dpi, "nothing but a margin below the legend"
    label = picture.axes[0].xaxis.label.get_window_extent(renderer)
    assert max(t.get_window_extent(renderer).y1 for t in legend) <= label.y0 + 1, "the legend lies on nothing"


def test_a_narrow_panel_has_room_for_both_tags_above_it() -> None:
    path = ROOT / "experiments" / "gcca" / "fig4.yaml"
    source = FigureData(*next(with_results([path], "paper", ROOT / "results")))
    inches = 2.2
    room = single_panel.Room(inches, single_panel.LOWEST, single_panel.LETTERS, single_panel.SMALLEST)
    prepared = single_panel._drawable(single_panel.named(source, "a"), source, room)
    picture = single_panel._build(prepared, inches, header_footer.SERIOUS)
    picture.draw_without_rendering()
    tags = [text for text in picture.texts if text.get_gid() == "tag"]
    boxes = [text.get_bbox_patch().get_window_extent() for text in tags]  # type: ignore[union-attr]
    assert [text.get_text() for text in tags] == ["STAND-IN DATA", "STALE"]
    assert boxes[1].x1 < boxes[0].x0
    assert boxes[1].x0 > 0
    assert max(box.x1 for box in boxes) < picture.bbox.x1
    assert max(box.y1 for box in boxes) < picture.bbox.y1
    assert min(box.y0 for box in boxes) > picture.axes[0].get_tightbbox().y1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--panel", "x"), "has no panel 'x' (panels: a, b, t)"),
        (("--panel", "t"), "panel 't' of beyond/small is a table"),
        (("--panel", "a", "--width", "1in"), "--width 1in: a panel with its labels needs at least 2in"),
        (("--panel", "a", "--width", "3.4"), "--width 3.4: must be a length with its unit"),
        (("--panel", "a", "--width", "900in"), "--width 900in: must be at most 50 in"),
        (("--width", "3.4in"), "--width needs --panel: it is the width of one panel"),
    ],
)
def test_what_cannot_be_drawn_in_a_column_is_one_error(
    fedrepro: Call, small: Path, done: Path, options: tuple[str, ...], said: str
) -> None:
    drawn = fedrepro("plot", small, *options)
    assert drawn.exit_code == 2
    assert said in drawn.output
    assert "Traceback" not in drawn.output


# In the user's own axes -----------------------------------------------------------------------------------------------


def test_a_panel_in_ones_own_axes_leaves_the_rest_of_the_figure_alone(small: Path, done: Path) -> None:
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3))
    right.plot([1, 2])
    before = dict(matplotlib.rcParams)
    size, place, title = tuple(fig.get_size_inches()), right.get_position().bounds, fig._suptitle
    said = draw_panel(left, small, "b", tier="quick", results=done)
    fig.canvas.draw()
    assert dict(matplotlib.rcParams) == before
    assert (tuple(fig.get_size_inches()), right.get_position().bounds, fig._suptitle) == (size, place, title)
    assert (fig.axes, len(right.lines)) == ([left, right], 1)
    assert left.get_title() == ""
    assert left.get_xlabel().startswith("communication cost")
    assert left.get_yscale() == "log"
    legend = [text.get_text() for text in left.get_legend().get_texts()]
    assert legend == ["FedCAvg, $Q_2$ = 1", "FedCAvg, $Q_2$ = 5", "FedCGds, $m$ = 2", "FedCGds, $m$ = 6"]
    assert said.startswith("a small figure: (b)")
    assert "QUICK TIER" in said
    assert draw_panel(right, small, "a", results=done, legend=False)
    assert right.get_legend() is None
    plt.close(fig)


def test_curves_that_leave_the_frame_are_named_in_the_caption_where_a_title_may_stand() -> None:
    fig, ax = plt.subplots()
    said = draw_panel(ax, ROOT / "experiments" / "gcca" / "fig4.yaml", "a", tier="paper", results=ROOT / "results")
    assert "▲: leaves the frame; ▲ CuteMaxVar, q = 2: up to " in said
    assert ax.lines[-1].get_marker() == "^"
    assert not ax.artists, "nothing stands above the axes"
    plt.close(fig)


def test_what_one_pair_of_axes_cannot_show_is_refused(small: Path, done: Path) -> None:
    fig, ax = plt.subplots()
    for panel, said in (("t", "is a table"), ("z", "has no panel 'z'")):
        with pytest.raises(UserError, match=said):
            draw_panel(ax, small, panel, results=done)
    with pytest.raises(UserError, match="'fast' is not a tier"):
        draw_panel(ax, small, "a", tier="fast", results=done)
    with pytest.raises(UserError, match="no results at the paper tier"):
        draw_panel(ax, small, "a", tier="paper", results=done)
    assert not ax.lines
    plt.close(fig)


# Where pictures come from ---------------------------------------------------------------------------------------------


def test_every_picture_says_what_it_was_drawn_from_and_whence_whether_that_is_still_so(
    fedrepro: Call, small: Path, done: Path, tmp_path: Path
) -> None:
    fedrepro("plot", small, "--format", "png", "--format", "pdf", "--format", "svg")
    fedrepro("plot", small, "--panel", "a", "--format", "svg")
    files = sorted((tmp_path / "plots" / "quick" / "beyond").glob("small.*[gf]"))
    assert len(files) == 4
    sidecar = json.loads((done / "quick" / "beyond" / "small.json").read_text())
    call = ("provenance", *files, "--results", done)
    said = json.loads(fedrepro(*call, "--json").output)
    for line in said:
        assert line["results_sha256"] == sidecar["csv_sha256"]
        assert line["commit"].startswith(sidecar["made"]["commit"])
        assert line["tier"] == "quick"
        assert line["now"] == {"spec": "the same", "results": "the same"}
    assert said[0]["command"] == f"fedrepro plot {small} --tier quick --panel a --width 3.4in"
    assert said[1]["command"] == f"fedrepro plot {small} --tier quick"
    assert fedrepro(*call, "--check").exit_code == 0
    text = small.read_text()
    small.write_text(text + "# more\nnote: nothing of it is drawn\n")
    undrawn = fedrepro(*call, "--check")
    assert undrawn.exit_code == 0
    assert re.search(r"spec +[0-9a-f]{16}: changed in nothing that is drawn\n", undrawn.output)
    small.write_text("paper: [")
    assert re.search(r"spec +[0-9a-f]{16}: changed\n", fedrepro(*call, "--check").output)
    older = {key: value for key, value in provenance.read(files[0]).items() if key != "drawn_sha256"}
    assert provenance.states(older, done)["spec"] == "changed"
    small.write_text(text.replace("title:", "title: Another,", 1))
    changed = fedrepro(*call, "--check")
    assert changed.exit_code == 1
    assert re.search(r"spec +[0-9a-f]{16}: changed\n +results +[0-9a-f]{16}: the same", changed.output)
    table = done / "quick" / "beyond" / "small.csv"
    table.write_text(table.read_text() + "\n")
    assert re.search(r"results +[0-9a-f]{16}: changed", fedrepro(*call).output)
    table.unlink()
    assert re.search(r"results +[0-9a-f]{16}: not here", fedrepro(*call).output)


def test_times_that_are_drawn_and_options_are_part_of_it(fedrepro: Call, small: Path, tmp_path: Path) -> None:
    small.write_text(small.read_text().replace("x: uplink_scalars", "x: seconds"))
    fedrepro("run", small, "--jobs", 1, "--set", "rounds=3", "--plot")
    own = Path("set") / "rounds=3" / "quick" / "beyond"
    picture = tmp_path / "plots" / own / "small.png"
    facts = provenance.read(picture)
    assert facts["results_of"].endswith("--tier quick --set rounds=3")
    base = tmp_path / "results" / own / "small"
    assert set(provenance.states(facts, tmp_path / "results").values()) == {"the same"}
    sidecar = json.loads(base.with_suffix(".json").read_text())
    runs = next(iter(sidecar["timing"].values()))
    runs["1"]["seconds"][-1] += 1.0
    base.with_suffix(".json").write_text(json.dumps(sidecar))
    assert provenance.states(facts, tmp_path / "results")["times"] == "changed"


def test_texts_with_every_special_character_come_back(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    said = json.dumps({"fedrepro": 1, "text": '(a) \\ ) <b> & "c" ]]> ü \n'})
    for name, field in provenance.FIELDS.items():
        path = tmp_path / f"x.{name}"
        Figure().savefig(path, metadata={field: said})
        (text,) = [t for t in getattr(provenance, f"_of_{name}")(path, path.read_bytes()) if "fedrepro" in t]
        assert json.loads(text) == json.loads(said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a PNG, PDF or SVG file"),
        (b"GIF89a", "is not a PNG, PDF or SVG file"),
        (b"\x89PNG\r\n\x1a\nrubbish", "is a damaged PNG file"),
        (b"%PDF-1.4 rubbish", "is a damaged PDF file"),
        (b"%PDF-1.4\n<< /Subject (a letter) >>\n%%EOF\n", "has no record of its provenance"),
        (b"<svg><metadata>", "is a damaged SVG file"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "has no record of its provenance"),
        (b"<svg><description>[1]</description></svg>", "has no record of its provenance"),
        (b"<svg><description>" + b"[" * 100000 + b"</description></svg>", "has no record of its provenance"),
        (b'<!DOCTYPE s [<!ENTITY a "aaaa">]><svg><description>&a;</description></svg>', "defines XML entities"),
        (b'<svg><description>{"fedrepro": 2}</description></svg>', "version 2 of its record is unknown"),
        (b'<svg><description>{"fedrepro": 1}</description></svg>', "is damaged"),
    ],
)
def test_foreign_and_damaged_files_are_one_error(fedrepro: Call, tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    result = fedrepro("provenance", path)
    assert (result.exit_code, result.output.count("error:")) == (2, 1)
    assert said in result.output


def test_a_picture_cannot_lead_out_of_the_results(done: Path, fedrepro: Call, small: Path, tmp_path: Path) -> None:
    fedrepro("plot", small, "--format", "svg")
    path = tmp_path / "plots" / "quick" / "beyond" / "small.svg"
    path.write_text(path.read_text().replace("beyond/small&quot;", "..&quot;").replace('"beyond/small"', '"../small"'))
    with pytest.raises(UserError, match="is damaged"):
        provenance.read(path)
    with pytest.raises(UserError, match="cannot be read"):
        provenance.read(tmp_path / "nowhere.png")


def test_a_png_that_breaks_off_is_damaged(fedrepro: Call, small: Path, done: Path, tmp_path: Path) -> None:
    fedrepro("plot", small, "--format", "png")
    path = tmp_path / "plots" / "quick" / "beyond" / "small.png"
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(UserError, match="is a damaged PNG file"):
        provenance.read(path)
