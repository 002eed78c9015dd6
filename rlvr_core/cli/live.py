"""What a person sees while a run goes on: two live lines, and a line kept for what matters."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from rlvr_core.api.verdicts import Json


class LiveReporter:
    """Implements `Reporter` on a terminal; elsewhere it prints one plain line a step.

    Args:
        console: Where to write.
        title: Shown in front, such as the run's name.
        total_steps: Of the run.
    """

    def __init__(self, console: Console, title: str, total_steps: int) -> None:
        self._console = console
        self._title = title
        self._total = total_steps
        self._seconds: list[float] = []
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("[dim]{task.fields[phase]}"),
            TimeElapsedColumn(),
        )
        self._task = self._progress.add_task(title, total=total_steps, phase="starting")
        self._facts = Text()
        self._has_replayed = False
        # Two lines, so that nothing is cut in a terminal of 80 columns.
        self._live = Live(Group(self._progress, self._facts), console=console, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def phase(self, text: str) -> None:
        """Show what is going on."""
        self._progress.update(self._task, phase=text)
        if not self._console.is_terminal and not text.startswith("step "):
            self._console.print(f"{self._title}: {text}", markup=False, highlight=False)

    def step(self, record: Mapping[str, Json]) -> None:
        """Show a finished step."""
        step = record["step"]
        self._seconds.append(record["step_s"])
        left = _clock((self._total - step) * sum(self._seconds[-5:]) / len(self._seconds[-5:]))
        reward = _number(record["reward_mean"])
        facts = (
            f"reward {reward}  useful groups {record['useful_groups']}/{record['groups']}  "
            f"{_number(record['tokens_per_s'], 0)} tokens/s  {left} left"
        )
        self._progress.update(self._task, completed=step)
        self._facts.plain = facts
        if not self._console.is_terminal:
            line = f"{self._title}: step {step}/{self._total}  {facts}"
            self._console.print(line, markup=False, highlight=False)

    def evaluation(self, record: Mapping[str, Json]) -> None:
        """Keep a line for an evaluation."""
        parts = [
            f"{grader} {_percent(of['accuracy'])} ({_percent(of['low'])} to {_percent(of['high'])})"
            for grader, of in record["graders"].items()
        ]
        line = f"{self._title}: {record['split']} after step {record['step']}: {'; '.join(parts)}"
        self._console.print(line, markup=False, highlight=False)

    def event(self, record: Mapping[str, Json]) -> None:
        """Keep a line for a warning or an action; one for all steps that replay a recording."""
        if record["kind"] == "replayed":
            if self._has_replayed:
                return
            self._has_replayed = True
        asked = record.get("monitor", "core")
        by = "" if asked == "core" else f" by {asked}"
        line = f"{record['kind']}{by}: {record.get('reason', '')}"
        self._console.print(f"[yellow]{escape(self._title)}: {escape(line)}[/]", highlight=False)


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
