"""The report as one HTML file: no script, no outside request, hostile text made harmless.

Everything a model or a data file wrote is escaped by the template engine, its invisible and
direction-changing characters are shown by number, and a content security policy forbids scripts and
requests should anything slip through.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rlvr_core.api.errors import EnvironmentFault
from rlvr_core.api.verdicts import Json
from rlvr_core.records.layout import storable, without_non_finite
from rlvr_core.report.chart import Chart, Line, line_chart
from rlvr_core.report.compare import Accuracy
from rlvr_core.report.read import Run, read_arms
from rlvr_core.report.samples import SampleGroup, sample_groups
from rlvr_core.report.sentences import interval_text, p_text, percent, points, sampling_text
from rlvr_core.report.summary import Arm, Summary, summarise

_EVENTS_SHOWN = 40
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Unicode categories that are shown by number: controls, direction marks, line separators …"""


def write_report(run_paths: Sequence[Path], destination: Path) -> Summary:
    """Write the report page of a run.

    Args:
        run_paths: The verifier arm's run folder, then the control arm's when there is one; or only
            a control arm's.
        destination: The HTML file; written aside, then renamed.

    Returns:
        The summary that stands in the page.

    Raises:
        RunFolderError: RLVR-T104, when a run folder cannot be read.
        StackError: RLVR-S106, when the second is no control arm, or the first is one.
        EnvironmentFault: RLVR-T106, when the page cannot be written.
    """
    runs = read_arms(run_paths)
    summary = summarise(*runs)
    page = render_page(summary, runs)
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        aside = destination.with_name(f".{destination.name}.tmp")
        aside.write_bytes(page.encode())
        aside.replace(destination)
    except OSError as error:
        raise EnvironmentFault(
            "RLVR-T106",
            "the report could not be written",
            origin=str(destination),
            cause=error.strerror,
            fix="write it somewhere else with --out",
        ) from error
    return summary


def render_page(summary: Summary, runs: Sequence[Run]) -> str:
    """Return the page as text that UTF-8 can hold."""
    environment = Environment(
        loader=PackageLoader("rlvr_core.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=percent,
        points=points,
        p_text=p_text,
        visible=visible,
        interval=interval_text,
        prose=prose,
    )
    groups: list[SampleGroup] = []
    events: list[tuple[str, dict[str, Json]]] = []
    for arm, run in zip(summary.arms, runs, strict=True):
        groups += sample_groups(run, arm.arm)
        events += [(arm.arm, event) for event in run.events[-_EVENTS_SHOWN:]]
    page = environment.get_template("page.html.j2").render(
        summary=summary,
        sampling=sampling_text(summary.changes),
        charts=charts(summary),
        groups=groups,
        events=events,
        embedded=embedded_json(summary.to_json()),
        settings=_settings(summary),
        stack_yaml=runs[0].stack_yaml,
    )
    return storable(page)


def charts(summary: Summary) -> list[Chart]:
    """Return the charts that have something to show, in the order of the page."""
    drawn = [_curve(summary, "reward_mean", "Training reward", "mean reward a completion")]
    splits = dict.fromkeys(point.split for arm in summary.arms for point in arm.accuracies)
    drawn += [_accuracy_chart(summary, split) for split in splits]
    drawn += [
        _curve(summary, "pass_rate", "Passed by the verifier, in training", "share", True),
        _curve(summary, "parse_failure_rate", "No answer could be read", "share", True),
        _curve(summary, "length_mean", "Completion length", "tokens, mean"),
        _curve(summary, "entropy", "Entropy of sampling", "nats a token, mean"),
    ]
    return [chart for chart in drawn if chart is not None]


def embedded_json(value: Json) -> Markup:
    """Return JSON that can stand in a ``<script>`` element: no ``<``, no bare separators."""
    text = json.dumps(without_non_finite(value), ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704  (every character that HTML gives a meaning is escaped)


def visible(text: object) -> str:
    """Return text with invisible and direction-changing characters shown as ``⟦U+202E⟧``."""
    return "".join(
        f"⟦U+{ord(character):04X}⟧"
        if character not in "\n\t" and unicodedata.category(character) in _INVISIBLE
        else character
        for character in str(text)
    )


def prose(sentence: str) -> str:
    """Return a sentence for the page, in which no line ends between a number and its ``%``."""
    return visible(sentence).replace(" %", "\N{NO-BREAK SPACE}%")


def _curve(
    summary: Summary, key: str, title: str, y_label: str, is_share: bool = False
) -> Chart | None:
    lines = [
        Line(label=_arm_label(arm), style=arm.arm, points=arm.curves[key]) for arm in summary.arms
    ]
    return line_chart(title, lines, y_label=y_label, is_share=is_share)


def _accuracy_chart(summary: Summary, split: str) -> Chart | None:
    lines: list[Line] = []
    for arm in summary.arms:
        of_split = [point for point in arm.accuracies if point.split == split]
        for order, grader in enumerate(dict.fromkeys(point.grader for point in of_split)):
            style = arm.arm if order == 0 else f"{arm.arm} lenient"
            label = f"{_arm_label(arm)}, {grader}"
            lines.append(_accuracy_line(label, style, of_split, grader))
    return line_chart(
        f"Accuracy on {split}", lines, y_label="share passed, 95 % interval", is_share=True
    )


def _accuracy_line(label: str, style: str, points: Sequence[Accuracy], grader: str) -> Line:
    places: list[tuple[float, float]] = []
    band: list[tuple[float, float]] = []
    for point in points:
        if point.grader != grader or point.accuracy is None:
            continue
        places.append((point.step, point.accuracy))
        band.append((point.low or 0.0, 1.0 if point.high is None else point.high))
    return Line(label=label, style=style, points=places, band=band)


def _arm_label(arm: Arm) -> str:
    return arm.arm if arm.control is None else f"control ({arm.control})"


def _settings(summary: Summary) -> list[tuple[str, str]]:
    shown = []
    for key, value in summary.settings.items():
        if key in ("plugins", "data"):
            continue
        is_plain = value is None or isinstance(value, str | int | float)
        text = "none" if value is None else str(value) if is_plain else json.dumps(value)
        shown.append((key.replace("_", " "), text))
    return shown
