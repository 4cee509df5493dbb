"""The report's pages in headless Chromium, from disk: they work, load nothing from elsewhere, and are accessible."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .test_report_site import computed, say

__all__ = ["computed"]  # the project with its report
pytestmark = pytest.mark.slow
SIZES = [(1280, 900, "light"), (390, 800, "dark")]
KINDS = ("index", "find", "summary", "discrepancies", "claims/small.1", "claims/later.1", "figures/beyond-small",
         "figures/beyond-later")  # fmt: skip


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless browser of this machine; skips the tests where there is none, or nothing to drive it."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra test)")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    executable = next((path for name in names if (path := shutil.which(name))), None)
    if executable is None:
        pytest.skip(f"no Chromium is installed (looked for {', '.join(names)})")
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page of the report in a window, with everything it complained of and everything it asked for."""

    def __init__(self, chromium: Any, size: tuple[int, int, str] = SIZES[0]) -> None:
        width, height, scheme = size
        self.page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))

    def at(self, path: Path) -> Opened:
        self.page.goto(path.resolve().as_uri())
        return self

    def is_well(self, folder: Path) -> None:
        """Nothing was complained of, and nothing asked for that is not in the folder."""
        assert self.complaints == []
        inside = folder.resolve().as_uri()
        assert [url for url in self.asked if not url.startswith((inside, "data:", "blob:"))] == []


@pytest.fixture
def folder(computed: Path) -> Path:
    """The report's folder."""
    return computed / "out" / "report"


@pytest.mark.parametrize("size", SIZES, ids=["wide-light", "narrow-dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_fits_loads_nothing_else_and_is_accessible(
    folder: Path, chromium: Any, kind: str, size: tuple[int, int, str]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed (extra test)")
    opened = Opened(chromium, size).at(folder / f"{kind}.html")
    page = opened.page
    page.evaluate("document.querySelectorAll('img[loading]').forEach(i => { i.loading = 'eager'; })")
    page.wait_for_function("Array.from(document.images).every(i => i.complete && i.naturalWidth > 0)")
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    opened.is_well(folder)
    assert serious(axe, page) == []
    page.close()


def serious(axe: Any, page: Any) -> list[tuple[str, list[str]]]:
    """What axe-core finds wrong with a page that keeps somebody from reading it; it asks for style sheets itself."""
    found = axe.Axe().run(page).response["violations"]
    return [(v["id"], [n["html"] for n in v["nodes"]]) for v in found if v["impact"] in ("serious", "critical")]


def test_the_first_page_is_light_and_quick(folder: Path, chromium: Any) -> None:
    opened = Opened(chromium)
    began = time.monotonic()
    opened.at(folder / "index.html")
    assert time.monotonic() - began < 10
    files = {Path(url.removeprefix("file://")) for url in opened.asked if url.startswith("file:")}
    assert sum(path.stat().st_size for path in files) < 1_000_000
    assert not [path for path in files if path.name == "plotly.min.js" or path.name == "data.js"]
    opened.page.close()


def test_counts_lead_to_the_claims_behind_them_and_filters_narrow_them(folder: Path, chromium: Any) -> None:
    opened = Opened(chromium).at(folder / "index.html")
    page = opened.page
    page.get_by_role("link", name=re.compile("undecided, evidence quick")).click()
    page.wait_for_url("**/find.html#**")
    assert page.locator("#count").inner_text() == "1 claim"
    assert page.locator("li[data-verdict]:visible").count() == 1
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function("document.getElementById('count').textContent.startsWith('3 claims')")
    page.get_by_label("Verdict").select_option("not-tested")
    assert page.locator("li[data-verdict]:visible").count() == 1
    assert page.url.endswith("#verdict=not-tested")
    page.reload()
    assert page.locator("li[data-verdict]:visible").count() == 1
    opened.is_well(folder)
    page.close()


def test_search_finds_claims_methods_and_figures_from_every_page(folder: Path, chromium: Any) -> None:
    opened = Opened(chromium).at(folder / "claims" / "small.1.html")
    page = opened.page
    page.get_by_role("searchbox", name="Search").fill("few ENOUGH")
    page.keyboard.press("Enter")
    page.wait_for_url("**/find.html?q=**")
    assert page.locator("li[data-verdict]:visible").count() == 1
    page.get_by_label("Words").fill("fedcgds")
    assert page.locator("#methods").is_visible()
    assert page.locator("li[data-verdict]:visible").count() == 3  # their figures show it
    opened.is_well(folder)
    page.close()


def test_the_keyboard_skips_to_the_content(folder: Path, chromium: Any) -> None:
    opened = Opened(chromium).at(folder / "index.html")
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.close()


def test_a_panel_is_explored(folder: Path, chromium: Any) -> None:
    if not (folder / "static" / "plotly.min.js").is_file():
        pytest.skip("plotly is not installed (extra report)")
    opened = Opened(chromium).at(folder / "figures" / "beyond-small.html")
    page = opened.page
    box = page.locator(".explore").first
    assert not [url for url in opened.asked if "plotly" in url]
    box.get_by_role("button", name="Explore").click()
    page.wait_for_selector(".explore .plot .main-svg")
    lines = box.locator(".scatterlayer .trace")
    drawn = lines.count()
    box.get_by_label("x axis").select_option("uplink_bits")
    page.wait_for_function("document.querySelector('.explore .xtitle').textContent.includes('bits')")
    box.get_by_label("log y").uncheck()
    box.get_by_label("every trial").check()
    page.wait_for_function(f"document.querySelectorAll('.explore .scatterlayer .trace').length > {drawn}")
    more = lines.count()
    assert more == drawn + 8  # four curves of two trials
    box.locator(".curves input").first.uncheck()
    page.wait_for_function(f"document.querySelectorAll('.explore .scatterlayer .trace').length < {more}")
    with page.expect_download() as saved:
        box.get_by_role("button", name="CSV").click()
    rows = Path(saved.value.path()).read_text().splitlines()
    assert rows[0].startswith('"curve","round","uplink_scalars","uplink_bits"')
    assert len(rows) == 1 + 4 * 2 * 6
    opened.is_well(folder)
    page.close()


def test_the_points_that_a_check_read_are_in_the_picture_to_explore(folder: Path, chromium: Any) -> None:
    if not (folder / "static" / "plotly.min.js").is_file():
        pytest.skip("plotly is not installed (extra report)")
    opened = Opened(chromium).at(folder / "claims" / "small.1.html")
    page = opened.page
    page.get_by_role("button", name="Explore").click()
    page.wait_for_selector(".explore .plot .main-svg")
    assert page.locator(".explore .legendtext", has_text="read by the check").count() == 1
    assert page.locator(".explore .points path.point").count() == 2
    opened.is_well(folder)
    page.close()


def test_the_summary_prints_on_a_few_pages(folder: Path, chromium: Any) -> None:
    opened = Opened(chromium).at(folder / "summary.html")
    pdf = opened.page.pdf(format="A4")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf)) <= 2
    opened.page.close()


def test_two_sets_of_results_in_the_browser(computed: Path, chromium: Any, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed (extra test)")
    other = tmp_path / "other"
    say("run", "experiments/beyond/small.yaml", "--quiet", "--jobs", 1, "--results", other, "--set", "problem.rho=0.1")
    (own,) = (other / "set").iterdir()
    done = say("compare", "results/quick", own / "quick", "--html", tmp_path / "pages")
    assert done.exit_code == 0, done.output
    opened = Opened(chromium, SIZES[1]).at(tmp_path / "pages" / "index.html")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    opened.is_well(tmp_path / "pages")
    assert serious(axe, opened.page) == []
    opened.page.close()
