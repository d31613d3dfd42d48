"""Charts as SVG, without a library: for light and dark screens, with a description for screen readers."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH = 760
COLOURS = [
    ("#2f55d4", "#8fabff"),
    ("#b3261e", "#ff9d94"),
    ("#0b6b66", "#6fd3cb"),
    ("#8a4b08", "#f3bd7c"),
    ("#8a2a86", "#eda3e8"),
    ("#4a5462", "#b9c3cf"),
    ("#16663a", "#86d9a8"),
    ("#1d5fae", "#92c1f7"),
]
DASHES = ["none", "6 4", "2 3", "10 4 2 4", "1 4", "8 3", "3 6", "12 4"]


class Bar(NamedTuple):
    name: str
    value: float
    is_ours: bool = False


class Chart(NamedTuple):
    title: str
    description: str
    x: str = ""
    y: str = ""


def lines(chart: Chart, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """A line chart with logarithmic axes. The first series is the most important and is drawn over the others."""
    points = [point for line in series.values() for point in line]
    left, top, right, bottom = 64, 64, WIDTH - 236, 380
    x = _Scale([point[0] for point in points], left, right)
    y = _Scale([point[1] for point in points], bottom, top)
    parts = [*_horizontal(y, left, right), *_vertical(x, top, bottom, sorted({point[0] for point in points}))]
    parts.append(f'<text class="label" x="{(left + right) / 2:.0f}" y="{bottom + 42}">{escape(chart.x)}</text>')
    middle = (top + bottom) / 2
    rotation = f'transform="rotate(-90 16 {middle:.0f})"'
    parts.append(f'<text class="label" x="16" y="{middle:.0f}" {rotation}>{escape(chart.y)}</text>')
    for number, (name, line) in reversed(list(enumerate(series.items()))):
        parts += _line(number, [(x.at(a), y.at(b)) for a, b in line])
        parts += _legend(number, name, right + 24, top + 8 + 22 * number)
    return _document(chart, max(bottom + 56, top + 22 * len(series) + 8), parts)


def bars(chart: Chart, groups: Mapping[str, Sequence[Bar]], unit: str = "") -> str:
    """A bar chart with a linear scale from zero. Bars stand under the name of their group."""
    longest = max(len(bar.name) for group in groups.values() for bar in group)
    left, right, at = min(24 + 7 * longest, 330), WIDTH - 110, 64
    most = max(bar.value for group in groups.values() for bar in group) or 1
    parts: list[str] = []
    for name, group in groups.items():
        if name:
            parts.append(f'<text class="group" x="16" y="{at + 14}">{escape(name)}</text>')
            at += 24
        for bar in group:
            length = max(1.0, (right - left) * bar.value / most)
            kind = "bar ours" if bar.is_ours else "bar"
            parts.append(f'<text class="name" x="{left - 8}" y="{at + 14}">{escape(bar.name)}</text>')
            parts.append(f'<rect class="{kind}" x="{left}" y="{at + 2}" width="{length:.1f}" height="16" rx="2"/>')
            value = f"{_figure(bar.value)} {unit}".strip()
            parts.append(f'<text class="value" x="{left + length + 6:.1f}" y="{at + 14}">{escape(value)}</text>')
            at += 22
        at += 10
    return _document(chart, at + 4, parts)


class _Scale:
    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        low, high = math.log10(min(values)), math.log10(max(values))
        room = max((high - low) * 0.06, 0.05)
        self.low, self.high, self.start, self.end = low - room, high + room, start, end

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """1, 2 and 5 times every power of ten, or the powers alone if there are many."""
        steps = (1, 2, 5) if self.high - self.low < 2.5 else (1,)
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        values = [float(step * 10.0**power) for power in powers for step in steps]
        return [value for value in values if self.low <= math.log10(value) <= self.high]


def _horizontal(scale: _Scale, left: float, right: float) -> list[str]:
    parts = []
    for value in scale.ticks():
        y = scale.at(value)
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick y" x="{left - 8}" y="{y + 4:.1f}">{_figure(value)}</text>')
    return parts


def _vertical(scale: _Scale, top: float, bottom: float, values: Sequence[float]) -> list[str]:
    parts = []
    for value in values:
        x = scale.at(value)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 18}">{_figure(value)}</text>')
    return parts


def _line(number: int, points: Sequence[tuple[float, float]]) -> list[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    kind = f"s{number % len(COLOURS)}"
    dots = [f'<circle class="dot {kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in points]
    return [f'<polyline class="line {kind}" points="{path}"/>', *dots]


def _legend(number: int, name: str, x: float, y: float) -> list[str]:
    kind = f"s{number % len(COLOURS)}"
    return [
        f'<line class="line {kind}" x1="{x}" x2="{x + 28}" y1="{y}" y2="{y}"/>',
        f'<circle class="dot {kind}" cx="{x + 14}" cy="{y}" r="3.5"/>',
        f'<text class="legend" x="{x + 36}" y="{y + 4}">{escape(name)}</text>',
    ]


def _figure(value: float) -> str:
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def _document(chart: Chart, height: float, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" role="img" aria-labelledby="title description">'
    )
    texts = [
        f'<title id="title">{escape(chart.title)}</title>',
        f'<desc id="description">{escape(chart.description)}</desc>',
    ]
    ground = '<rect class="ground" width="100%" height="100%" rx="8"/>'
    heading = f'<text class="title" x="16" y="32">{escape(chart.title)}</text>'
    return "\n".join([head, *texts, f"<style>{_style()}</style>", ground, heading, *parts, "</svg>"]) + "\n"


STYLE = """
svg {
  --ground: #ffffff; --ink: #161b22; --quiet: #4a5462; --grid: #dfe3e8; --bar: #8a94a3; --ours: #2f55d4;
  font: 13px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
}
text { fill: var(--ink) }
.ground { fill: var(--ground) }
.title { font-size: 16px; font-weight: 600 }
.tick, .label { fill: var(--quiet); text-anchor: middle }
.tick.y, .name { text-anchor: end }
.group { font-weight: 600 }
.grid { stroke: var(--grid) }
.bar { fill: var(--bar) }
.bar.ours { fill: var(--ours) }
.line { fill: none; stroke: var(--c); stroke-width: 2 }
.line.s0 { stroke-width: 3.5 }
.dot { fill: var(--c) }
@media (prefers-color-scheme: dark) {
  svg { --ground: #171c23; --ink: #e8ecf1; --quiet: #b3bdc9; --grid: #2b343f; --bar: #6d7988; --ours: #8fabff }
}
"""


def _style() -> str:
    light = [f".s{n} {{ --c: {colour}; stroke-dasharray: {DASHES[n]} }}" for n, (colour, _) in enumerate(COLOURS)]
    dark = [f"  .s{n} {{ --c: {colour} }}" for n, (_, colour) in enumerate(COLOURS)]
    return STYLE + "\n".join([*light, "@media (prefers-color-scheme: dark) {", *dark, "}", ""])
