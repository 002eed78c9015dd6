"""The numbers in plain sentences: claim, evidence with its interval, what it does not show."""

from __future__ import annotations

from collections.abc import Sequence

from rlvr_core.evaluate.agreement import Agreement
from rlvr_core.evaluate.statistics import PairedDifference
from rlvr_core.records.layout import described_changes
from rlvr_core.report.compare import Accuracy, ArmComparison, Change, FormatShare
from rlvr_core.report.health import agreements
from rlvr_core.report.read import Run

MINUS = "\N{MINUS SIGN}"


def sentences(
    verifier: Run | None,
    control: Run | None,
    changes: Sequence[Change],
    shares: Sequence[FormatShare],
    comparisons: Sequence[ArmComparison],
) -> list[str]:
    """Return the report's verdict, the most important sentence first."""
    both = (("verifier", verifier), ("control", control))
    said = [_incomplete(name, run) for name, run in both]
    said += [sentence for name, run in both if run for sentence in _resumed(name, run)]
    rewarding = _rewarding_graders(changes)
    if verifier is None and control is not None:
        said.append(
            f"This run is a control arm: {control.control} gave its rewards, not its verifiers. "
            f"What the verifiers teach is seen in the report of a run without control."
        )
    said += [_gain(c) for c in changes if c.arm == "verifier" and rewarding[c.split] == c.grader]
    said += [_format(share) for share in shares if share.arm == "verifier"]
    said += [sentence for name, run in both if run for sentence in _agreements(name, run)]
    if control is None:
        said.append("There is no control arm, so nothing can be said about what caused the change.")
    else:
        said += [
            _control(change, control, is_alone=verifier is None)
            for change in changes
            if change.arm == "control" and rewarding.get(change.split) == change.grader
        ]
        said += [_arms(c) for c in comparisons if rewarding.get(c.split) == c.grader]
        said += [_lengths(verifier, control)] if verifier else []
    if not changes:
        said.append("No split was evaluated twice, so there is no change to report yet.")
    return [sentence for sentence in said if sentence]


def percent(share: float | None) -> str:
    """Return a share as ``12.5 %``, a dash for None."""
    return "–" if share is None else f"{100 * share:.1f} %"


def points(difference: float) -> str:
    """Return a difference of shares as signed percentage points, ``+61.0``."""
    text = f"{100 * difference:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", MINUS)


def p_text(p_value: float) -> str:
    """Return ``p = 0.038``, or ``p < 0.001``."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def accuracy_text(point: Accuracy) -> str:
    """Return ``10.5 % [7.0, 15.5]``."""
    if point.accuracy is None:
        return "nothing judged"
    return f"{percent(point.accuracy)} {interval_text(point)}"


def interval_text(point: Accuracy) -> str:
    """Return ``[7.0, 15.5]``, in percent; a dash when nothing was judged."""
    if point.low is None or point.high is None:
        return "–"
    return f"[{100 * point.low:.1f}, {100 * point.high:.1f}]"


def paired_text(paired: PairedDifference) -> str:
    """Return ``+61.0 points [54.0, 68.0], p < 0.001``."""
    return (
        f"{points(paired.difference)} points [{points(paired.low)}, {points(paired.high)}], "
        f"{p_text(paired.p_value)}"
    )


def sampling_text(changes: Sequence[Change]) -> str:
    """Return how the completions behind the accuracies were sampled, as a sentence."""
    ways: dict[str, list[str]] = {}
    for change in changes:
        for point in (change.before, change.after):
            named = ways.setdefault(_sampling(point), [])
            if change.split not in named:
                named.append(change.split)
    if len(ways) == 1:
        return f"Completions were sampled {next(iter(ways))}."
    parts = "; ".join(f"{', '.join(named)} {way}" for way, named in ways.items())
    return f"Completions were sampled in different ways: {parts}."


def _sampling(point: Accuracy) -> str:
    values = (point.temperature, point.samples_per_prompt, point.max_completion_tokens)
    temperature, samples, tokens = (
        "unrecorded" if value is None else f"{value:g}" for value in values
    )
    return (
        f"at temperature {temperature}, samples a prompt: {samples}, "
        f"tokens a completion at most: {tokens}"
    )


def _rewarding_graders(changes: Sequence[Change]) -> dict[str, str]:
    """Return for each split its first grader: the one that rewards."""
    first: dict[str, str] = {}
    for change in changes:
        first.setdefault(change.split, change.grader)
    return first


def _incomplete(arm: str, run: Run | None) -> str:
    if run is None or run.steps_planned is None or run.steps_done >= run.steps_planned:
        return ""
    return (
        f"Incomplete: the {arm} arm has {run.steps_done} of {run.steps_planned} steps "
        f"(status “{run.manifest.get('status', 'unknown')}”)."
    )


def _resumed(arm: str, run: Run) -> list[str]:
    """Say what was changed, or only was not the same any more, when the run was continued."""
    said = []
    for entry in run.manifest.get("resumes", []):
        start = f"The {arm} arm was continued after step {entry['at_step']}"
        if entry.get("changed"):
            said.append(f"{start} with changes: {described_changes(entry['changed'])}.")
        if entry.get("surroundings"):
            said.append(
                f"{start} with other surroundings: {described_changes(entry['surroundings'])}. "
                f"Its results agree with those of an unbroken run to rounding."
            )
    return said


def _gain(change: Change) -> str:
    start = (
        f"{change.split}: accuracy under {change.grader} went from {accuracy_text(change.before)} "
        f"to {accuracy_text(change.after)} between steps {change.before.step} and "
        f"{change.after.step}"
    )
    if change.paired is None:
        return f"{start}; the two are not subtracted, because {change.why_not}."
    verdict = _verdict(change.paired, "a gain", "a loss")
    return (
        f"{start}: {paired_text(change.paired)}, on the same {change.paired.prompts} prompts: "
        f"{verdict}"
    )


def _verdict(paired: PairedDifference, rise: str, fall: str) -> str:
    if paired.separated:
        return f"{rise if paired.difference > 0 else fall} that is separated from chance."
    return f"not separated from chance ({_smallest(paired)})."


def _smallest(paired: PairedDifference) -> str:
    return (
        f"the smallest change that {paired.prompts} prompts would show is about "
        f"{100 * paired.resolvable:.1f} points"
    )


def _agreements(arm: str, run: Run) -> list[str]:
    """Say how often the members of a verifier that asks others contradicted each other."""
    return [_agreement(arm, one) for one in agreements(run) if one.judged]


def _agreement(arm: str, one: Agreement) -> str:
    kappa = "" if one.kappa is None else f", kappa {one.kappa:.2f}"
    return (
        f"{one.verifier}, in the training of the {arm} arm: {one.first} and {one.second} disagreed "
        f"on {one.disagreed} of {one.judged} completions that both judged "
        f"({percent(one.disagreed / one.judged)}{kappa}); {one.first} alone passed "
        f"{one.first_passed}, {one.second} alone {one.second_passed}."
    )


def _format(share: FormatShare) -> str:
    interval = f"[{points(share.low)}, {points(share.high)}]"
    start = (
        f"{share.split}: under {share.lenient}, which asks for no answer format, accuracy changed "
        f"by {points(share.lenient_gain)} points, against {points(share.strict_gain)} under "
        f"{share.strict} (the {share.prompts} prompts that both judged both times)"
    )
    if share.strict_gain <= 0:
        return f"{start}: there is no gain to divide."
    part = share.format_gain / share.strict_gain
    return (
        f"{start}: {points(share.format_gain)} points {interval} of the gain "
        f"({100 * part:.0f} %) come from writing the answer as asked, "
        f"{points(share.lenient_gain)} points ({100 * (1 - part):.0f} %) from getting more of them "
        f"right."
    )


def _control(change: Change, control: Run, *, is_alone: bool) -> str:
    start = (
        f"Control arm ({control.control or 'control'}, {control.steps_done} steps), "
        f"{change.split}: {accuracy_text(change.before)} to {accuracy_text(change.after)}"
    )
    if change.paired is None:
        return f"{start}; the two are not subtracted, because {change.why_not}."
    start = f"{start}, {paired_text(change.paired)}"
    if not change.paired.separated:
        return f"{start}: not separated from its start ({_smallest(change.paired)})."
    if change.paired.difference < 0:
        return f"{start}: separated from its start, downwards."
    if is_alone:
        return f"{start}: separated from its start."
    return (
        f"{start}: separated from its start. Rewards that know nothing of the answers raised it "
        f"too, so not all of the verifier arm's gain is the verifier's."
    )


def _arms(comparison: ArmComparison) -> str:
    paired = comparison.paired
    verdict = "separated" if paired.separated else "not separated"
    return (
        f"{comparison.split} after {comparison.step} steps in both arms: verifier arm minus "
        f"control arm {paired_text(paired)}: {verdict}."
    )


def _lengths(verifier: Run, control: Run) -> str:
    if verifier.steps_done == control.steps_done:
        return ""
    return (
        f"The arms differ in length ({verifier.steps_done} and {control.steps_done} steps): the "
        f"control shows what its rewards do in {control.steps_done} steps, and their ends are not "
        f"compared with each other."
    )
