"""The file that says how far a judge agrees with people, and for which judge that holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from rlvr_core.api import Json, Strict, read_json
from rlvr_plugin_llm_judge.canaries import WrongAnswer
from rlvr_plugin_llm_judge.figures import PROVEN, RAREST, Counts, rows_to_prove, wilson
from rlvr_plugin_llm_judge.prompt import prompt_sha256
from rlvr_plugin_llm_judge.rubric import Criterion

MAKE_ONE = "make one with `rlvr-llm-judge calibrate`"


class Agreement(Strict):
    """On one criterion."""

    agreeing: int = Field(ge=0)
    total: int = Field(ge=0)


class JudgeFacts(Strict):
    """One judge, as it was calibrated."""

    base_url: str
    model: str
    reported: str
    """The model that the endpoint said it is; empty when it did not say."""


class Calibration(Strict):
    """What ``rlvr-llm-judge calibrate`` writes."""

    schema_version: Literal[1]
    made: str
    judges: tuple[JudgeFacts, ...]
    prompt_sha256: str
    config_sha256: str
    labels_sha256: str
    """Of the file of labelled rows."""
    counts: Counts
    abstained: int = Field(ge=0)
    errors: int = Field(ge=0)
    criteria: dict[str, Agreement]
    """Agreement on each criterion that was labelled."""
    wrong: tuple[WrongAnswer, ...]
    """Labelled wrong answers that the judge failed: they are canaries from now on."""


def config_sha256(settings: Mapping[str, Json]) -> str:
    """Return the hash of the settings that a verdict depends on."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def read_calibration(path: str) -> Calibration:
    """Read a calibration file.

    Raises:
        ValueError: There is none, or it is not one.
    """
    try:
        return Calibration.model_validate(read_json(Path(path).read_text("utf-8")))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}; {MAKE_ONE}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{path} is no calibration: {where}: {first['msg']}") from None
    except ValueError as error:
        raise ValueError(f"{path} is no calibration: {error}") from None


def mismatch(
    calibration: Calibration,
    judges: Sequence[tuple[str, str]],
    rubric: Sequence[Criterion],
    settings: Mapping[str, Json],
) -> str | None:
    """Return why a calibration is another judge's, or None when it is this one's.

    Args:
        calibration: The file.
        judges: URL and model of each.
        rubric: The criteria.
        settings: As for `config_sha256`.
    """
    made_for = [(judge.base_url, judge.model) for judge in calibration.judges]
    if made_for != list(judges):
        return f"it was made for {_shown(made_for)}, and this is {_shown(judges)}"
    if calibration.prompt_sha256 != prompt_sha256(rubric):
        return "it was made with another prompt or rubric"
    if calibration.config_sha256 != config_sha256(settings):
        return "it was made with other settings"
    return None


def unproven(calibration: Calibration | None, rubric: Sequence[Criterion]) -> list[str]:
    """Return why a judge may not train, one sentence each; none when it may."""
    if calibration is None:
        return [f"it has no calibration: {MAKE_ONE}"]
    counts = calibration.counts
    found = []
    if shortfall := _shortfall(counts.agreeing, counts.total):
        found.append(f"its verdict {shortfall}")
    if counts.rarer_label < RAREST * counts.total:
        found.append(
            f"only {counts.rarer_label} of {counts.total} labelled rows have the rarer label; at "
            f"least {RAREST:.0%} must"
        )
    if len(rubric) > 1:
        for criterion in rubric:
            agreement = calibration.criteria.get(criterion.name, Agreement(agreeing=0, total=0))
            if shortfall := _shortfall(agreement.agreeing, agreement.total):
                found.append(f"its criterion {criterion.name!r} {shortfall}")
    return found


def _shortfall(agreeing: int, total: int) -> str | None:
    """Return how an agreement falls short of being proven, or None when it does not."""
    low, high = wilson(agreeing, total)
    if low >= PROVEN:
        return None
    if total == 0:
        return "was compared with no label"
    said = (
        f"agrees with {agreeing} of {total} labels: {low:.1%} to {high:.1%} (95 % interval), and "
        f"{PROVEN:.0%} must be proven"
    )
    enough = rows_to_prove(agreeing / total)
    return f"{said}; that takes about {enough} labels at this rate" if enough else said


def _shown(judges: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{model} at {url}" for url, model in judges)
