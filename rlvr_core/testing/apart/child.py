"""The process in which experiments are made: reads a request, writes one line a finding.

``python -m rlvr_core.testing.apart.child DESCRIPTOR < request``: findings go to the descriptor, so
that what a plugin prints cannot be taken for one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import IO

from rlvr_core.api.errors import exception_text
from rlvr_core.api.plugin import Family
from rlvr_core.api.verdicts import Json
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.testing.apart import conduct, estimators, monitors, samplers, shapes
from rlvr_core.testing.apart.bench import Bench, BrokenError, NotApplicableError
from rlvr_core.testing.apart.importing import Import, import_watched
from rlvr_core.testing.apart.watching import signal_handlers

EXPERIMENTS: Mapping[str, Callable[[Bench], str]] = {
    "R06": monitors.state,
    "R10": shapes.one_verdict_a_row,
    "R11": shapes.empty_batch,
    "R12": shapes.sizes,
    "R13": shapes.scores,
    "R14": shapes.agreement,
    "R15": shapes.plain_data,
    "R16": shapes.input_untouched,
    "R21": conduct.references,
    "R30": shapes.repeated,
    "R31": shapes.permuted,
    "R32": shapes.split,
    "R33": shapes.keys_of_golden_rows,
    "R44": conduct.in_a_thread,
    "R46": conduct.raises_when_it_breaks,
    "R60": conduct.leaks,
    "R61": conduct.memory,
    "R62": conduct.surroundings,
    "R63": conduct.throughput,
    "S10": samplers.chosen_rows,
    "S11": samplers.wrapped_prompt,
    "S12": samplers.sampled_groups,
    "S13": samplers.rescued_groups,
    "S14": samplers.kept_groups,
    "A10": estimators.finite,
    "A11": estimators.masked_are_zero,
    "A12": estimators.equal_rewards,
    "A13": estimators.permutation,
    "A14": estimators.scale,
    "A15": estimators.no_groups,
    "A16": estimators.repeated,
    "A17": estimators.tokens,
    "M10": monitors.actions,
    "M11": monitors.numerics,
    "M12": monitors.canaries,
}
"""Number of a check -> the experiment that it needs, beside those on the import."""


def main(descriptor: int) -> None:
    """Make the experiments that the request on standard input names."""
    request = json.load(sys.stdin)
    fields = request["ref"]
    ref = PluginRef(**{**fields, "family": Family(fields["family"])})
    with os.fdopen(descriptor, "w") as out:
        _say(out, begin="R01")
        found = import_watched(ref, may_import_torch=request["may_import_torch"])
        for number, experiment in _on_import(found).items():
            _make(out, number, experiment, {})
        if found.cls is None or found.error is not None:
            return
        handlers = signal_handlers()
        for number in request["experiments"]:
            bench = Bench(ref, found.cls, request["cases"], request["floor_rows_per_s"], handlers)
            _make(out, number, partial(EXPERIMENTS[number], bench), bench.data)


def _on_import(found: Import) -> dict[str, Callable[[], str]]:
    return {"R01": found.loads, "R02": found.version_fits, "R04": found.is_harmless}


def _make(
    out: IO[str], number: str, experiment: Callable[[], str], data: Mapping[str, Json]
) -> None:
    _say(out, begin=number)
    outcome = "passed"
    try:
        detail = experiment()
    except BrokenError as exc:
        outcome, detail = "failed", str(exc)
    except NotApplicableError as exc:
        outcome, detail = "not applicable", str(exc)
    except Exception as exc:  # noqa: BLE001 - the plugin's own fault, and the finding
        outcome, detail = "failed", f"it raised {exception_text(exc)}"
    _say(out, end=number, outcome=outcome, detail=detail, data=dict(data))


def _say(out: IO[str], **line: Json) -> None:
    out.write(json.dumps(line, default=repr) + "\n")
    out.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
