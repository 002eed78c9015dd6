"""Line charts as inline SVG: no script, no outside file, colours from the page's style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10

WIDTH, HEIGHT = 380, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 26, 36
_MARKER_LIMIT = 40
"""Lines with more points than this are drawn without markers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a chart."""

    label: str
    style: str
    """Class of the page's style sheet: ``verifier``, ``control`` or ``verifier lenient`` …"""
    points: Sequence[tuple[float, float]]
    """(x, y), in order of x."""
    band: Sequence[tuple[float, float]] = ()
    """(low, high) of each point; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart, drawn."""

    title: str
    svg: str
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def line_chart(
    title: str, lines: Sequence[Line], *, y_label: str, is_share: bool = False
) -> Chart | None:
    """Draw lines over the training steps; None when no line has a point.

    Args:
        title: Read out by screen readers; the page shows it as a heading.
        lines: Drawn in order, the first on top of the later ones.
        y_label: What the y axis counts, with its unit. The axis always holds 0, so that noise does
            not look like a trend.
        is_share: The values are shares: the axis runs from 0 to 100 %.
    """
    lines = [line for line in lines if line.points]
    if not lines:
        return None
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    ys += [end for line in lines for pair in line.band for end in pair]
    y_ticks = [0.0, 0.25, 0.5, 0.75, 1.0] if is_share else _ticks(min(0.0, *ys), max(0.0, *ys))
    x_ticks = _whole_ticks(min(xs), max(xs))
    x_of = _Scale(x_ticks[0], max(x_ticks[-1], max(xs)), _LEFT, WIDTH - _RIGHT)
    y_of = _Scale(y_ticks[0], y_ticks[-1], HEIGHT - _BOTTOM, _TOP)
    names = ", ".join(line.label for line in lines)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" class="chart" '
        f'aria-label="{escape(f"{title}: {names}")}">',
        *_y_axis(y_ticks, y_of, is_share),
        *_x_axis(x_ticks, x_of),
        f'<text class="label" x="0" y="11">{escape(y_label)}</text>',
        f'<text class="label" x="{(_LEFT + WIDTH - _RIGHT) / 2:.1f}" y="{HEIGHT - 4}" '
        f'text-anchor="middle">step</text>',
    ]
    for line in reversed(lines):
        parts += _draw(line, x_of, y_of, is_share)
    return Chart(title=title, svg="\n".join([*parts, "</svg>"]), lines=lines)


def _draw(line: Line, x_of: _Scale, y_of: _Scale, is_share: bool) -> list[str]:
    places = [(x_of(x), y_of(y)) for x, y in line.points]
    parts = [f'<g class="{escape(line.style)}">']
    if line.band and len(places) > 1:
        upper = [(x, y_of(high)) for (x, _), (_, high) in zip(places, line.band, strict=True)]
        lower = [(x, y_of(low)) for (x, _), (low, _) in zip(places, line.band, strict=True)]
        parts.append(f'<polygon class="band" points="{_path([*upper, *reversed(lower)])}"/>')
    for (x, _), (low, high) in zip(places, line.band, strict=False):
        top, bottom = y_of(high), y_of(low)
        parts.append(
            f'<path class="whisker" d="M{x:.1f} {top:.1f}V{bottom:.1f}'
            f'M{x - 3:.1f} {top:.1f}h6M{x - 3:.1f} {bottom:.1f}h6"/>'
        )
    parts.append(f'<polyline points="{_path(places)}"/>')
    if len(places) <= _MARKER_LIMIT:
        for (x, y), (step, value) in zip(places, line.points, strict=True):
            said = f"{100 * value:.1f} %" if is_share else f"{value:.3g}"
            title = escape(f"{line.label}, step {step:g}: {said}")
            parts.append(f"{_marker(line.style, x, y)}<title>{title}</title></path>")
    return [*parts, "</g>"]


def _marker(style: str, x: float, y: float) -> str:
    """Open a marker; the control arm has squares, so that colour is not the only difference."""
    if style.startswith("control"):
        return f'<path class="marker" d="M{x - 2.6:.1f} {y - 2.6:.1f}h5.2v5.2h-5.2z">'
    return f'<path class="marker" d="M{x - 3:.1f} {y:.1f}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z">'


def _y_axis(ticks: Sequence[float], y_of: _Scale, is_share: bool) -> list[str]:
    parts: list[str] = []
    for tick in ticks:
        y = y_of(tick)
        said = f"{100 * tick:.0f} %" if is_share else f"{tick:g}"
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>')
        parts.append(
            f'<text class="tick" x="{_LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{said}</text>'
        )
    return parts


def _x_axis(ticks: Sequence[float], x_of: _Scale) -> list[str]:
    y = HEIGHT - _BOTTOM + 14
    return [
        f'<text class="tick" x="{x_of(tick):.1f}" y="{y}" text-anchor="middle">{tick:g}</text>'
        for tick in ticks
    ]


def _path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Return round numbers that enclose [low, high], about `count` apart; at least two."""
    if high - low < 1e-9:
        margin = max(abs(high), 1.0) / 2
        low, high = low - margin, high + margin
    step = _round_step((high - low) / count)
    first = floor(low / step)
    ticks = [round(first * step, 10)]
    while ticks[-1] < high - 1e-9 * step:
        ticks.append(round((first + len(ticks)) * step, 10))
    return ticks


def _whole_ticks(low: float, high: float) -> list[float]:
    """Return whole numbers from `low` on, for the axis of steps."""
    step = max(1.0, _round_step(max(high - low, 1.0) / 5))
    first = floor(low / step) * step
    count = int((high - first) / step)
    ticks = [first + index * step for index in range(count + 1)]
    return ticks if len(ticks) > 1 else [first, first + step]


def _round_step(rough: float) -> float:
    scale: float = 10.0 ** floor(log10(rough))
    return next(scale * factor for factor in (1, 2, 2.5, 5, 10) if scale * factor >= rough * 0.999)
