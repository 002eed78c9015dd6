"""Draw the README's picture from a finished demo: ``python docs/draw_demo.py runs/demo``.

The charts are those of the report; this puts three of them side by side into one SVG file that
needs no style sheet.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

from rlvr_core.report.chart import HEIGHT, WIDTH
from rlvr_core.report.page import charts
from rlvr_core.report.read import find_arms, read_run
from rlvr_core.report.summary import summarise

PICTURE = Path(__file__).parent / "images" / "demo.svg"
TITLES = ("Training reward", "Accuracy on dev", "Accuracy on transfer")
MARGIN, TOP, BOTTOM = 16, 34, 30

STYLE = """
:root { --card: #ffffff; --text: #1d2126; --dim: #5c6570; --rule: #dfe2e6;
  --verifier: #1f66d1; --control: #c2570c; }
@media (prefers-color-scheme: dark) {
  :root { --card: #1c2024; --text: #e8eaed; --dim: #9aa4ae; --rule: #32383e;
    --verifier: #6ea8ff; --control: #f0a15e; } }
text { fill: var(--dim); font: 11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.heading { fill: var(--text); font-size: 14px; font-weight: 600; }
.card { fill: var(--card); }
.grid { stroke: var(--rule); fill: none; }
polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
.whisker { fill: none; opacity: .7; }
.band { opacity: .13; stroke: none; }
.verifier polyline, .verifier .whisker, .verifier line { stroke: var(--verifier); }
.verifier .marker, .verifier .band { fill: var(--verifier); }
.control polyline, .control .whisker, .control line { stroke: var(--control); }
.control .marker, .control .band { fill: var(--control); }
.lenient polyline { stroke-dasharray: 5 4; stroke-width: 1.5; }
.lenient .band, .lenient .whisker { display: none; }
"""

LEGEND = (
    ("verifier", "", "verifier arm"),
    ("control", "", "control arm, random rewards"),
    ("verifier", "5 4", "dashed: graded by the last number, not rewarded"),
)


def main() -> None:
    """Write the picture."""
    verifier, control = find_arms(Path(sys.argv[1]))
    summary = summarise(*(read_run(path) for path in (verifier, control) if path is not None))
    drawn = {chart.title: chart.svg for chart in charts(summary)}
    width = len(TITLES) * (WIDTH + MARGIN) + MARGIN
    height = TOP + HEIGHT + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
        f"<title>{escape(', '.join(TITLES))} of the demo</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="card" width="{width}" height="{height}" rx="8"/>',
    ]
    for place, title in enumerate(TITLES):
        x = MARGIN + place * (WIDTH + MARGIN)
        parts.append(f'<text class="heading" x="{x}" y="22">{escape(title)}</text>')
        frame = f'<svg x="{x}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" '
        parts.append(drawn[title].replace("<svg ", frame, 1))
    x = MARGIN
    for style, dashes, label in LEGEND:
        y = height - 12
        parts.append(
            f'<g class="{style}"><line x1="{x}" x2="{x + 24}" y1="{y - 4}" y2="{y - 4}" '
            f'stroke-width="2" stroke-dasharray="{dashes}"/>'
            f'<text x="{x + 30}" y="{y}">{escape(label)}</text></g>'
        )
        x += 60 + 6 * len(label)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text("\n".join([*parts, "</svg>\n"]), "utf-8")


if __name__ == "__main__":
    main()
