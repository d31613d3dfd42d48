"""The charts of the benchmarks: well-formed, to be read in light and dark, and by ear."""

import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def svg(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import svg

    monkeypatch.delitem(sys.modules, "svg")
    return svg


def texts(drawn: str) -> list[str]:
    return [element.text for element in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def test_lines_say_what_they_are(svg):
    chart = svg.Chart("Search", "ours: 3 ms at 1,000.", "memories", "ms")
    drawn = svg.lines(chart, {"ours": [(1000, 3.0), (100_000, 9.0)], "a <b> & c": [(1000, 30.0)]})
    root = ElementTree.fromstring(drawn)
    assert root.findtext(f"{SVG}title") == "Search"
    assert root.findtext(f"{SVG}desc") == "ours: 3 ms at 1,000."
    assert {"ours", "a <b> & c", "memories", "ms", "1,000", "100,000"} <= set(texts(drawn))


def test_a_larger_figure_is_higher(svg):
    drawn = svg.lines(svg.Chart("t", "d"), {"ours": [(1000, 3.0), (2000, 30.0)]})
    line = next(ElementTree.fromstring(drawn).iter(f"{SVG}polyline"))
    (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in line.get("points", "").split())
    assert x1 < x2
    assert y1 > y2


def test_one_point_is_a_chart_too(svg):
    assert "ours" in texts(svg.lines(svg.Chart("t", "d"), {"ours": [(1000, 3.0)]}))


def test_bars_are_as_long_as_their_figures(svg):
    drawn = svg.bars(svg.Chart("t", "d"), {"group": [svg.Bar("ours", 100.0, True), svg.Bar("theirs", 25.0)]}, "ms")
    ours, theirs = [bar for bar in ElementTree.fromstring(drawn).iter(f"{SVG}rect") if "bar" in bar.get("class", "")]
    assert float(ours.get("width", 0)) == pytest.approx(4 * float(theirs.get("width", 0)), abs=0.2)
    assert {"group", "ours", "theirs", "100 ms", "25 ms"} <= set(texts(drawn))


def test_nothing_but_zero_is_drawn(svg):
    assert "0" in texts(svg.bars(svg.Chart("t", "d"), {"": [svg.Bar("none", 0.0)]}))


def test_there_is_a_dark_side(svg):
    assert "prefers-color-scheme: dark" in svg.bars(svg.Chart("t", "d"), {"": [svg.Bar("one", 1.0)]})


@pytest.mark.parametrize("path", sorted((BENCHMARKS / "results").glob("*.svg")), ids=lambda path: path.name)
def test_drawn_charts_are_well_formed(path):
    root = ElementTree.fromstring(path.read_text())
    assert root.findtext(f"{SVG}title")
    assert root.findtext(f"{SVG}desc")
