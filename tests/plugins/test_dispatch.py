"""Hooks are called in file order, one plugin at a time, and what they return is checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from rlvr_core.api import (
    Action,
    ActionKind,
    EvalEvent,
    Family,
    Finding,
    FinishReason,
    Group,
    Need,
    Plugin,
    PluginError,
    Rollout,
    Row,
    RowVerifier,
    RunEndedError,
    RunInfo,
    Segment,
    Session,
    Severity,
    StackError,
    Status,
    StepEvent,
    Strict,
    Verdict,
    VerifyBatch,
    VerifyRow,
    hookimpl,
)
from rlvr_core.config.models import PluginEntry
from rlvr_core.plugins.dispatch import Dispatcher
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.plugins.resolve import LoadedPlugin

SESSION = cast(Session, object())
ROWS = [
    Row(id=str(place), prompt=f"p{place}", verifier="judge", ground_truth={}) for place in range(3)
]
RUN = RunInfo(folder=Path(), total_steps=1, seed=0, manifest={})


def group(*rewards: float | None, row: Row = ROWS[0], tokens: int = 2) -> Group:
    rollouts = [
        Rollout(
            row=row,
            sample_index=place,
            completion="c",
            segments=[Segment(token_ids=[1] * tokens)],
            finish_reason=FinishReason.STOP,
            weights_version=0,
            sampled_under=row.prompt,
            trained_under=row.prompt,
            reward=reward,
        )
        for place, reward in enumerate(rewards)
    ]
    return Group(row=row, rollouts=rollouts)


def loaded(cls: type[Plugin], name: str = "mine") -> LoadedPlugin:
    ref = PluginRef(Family.VERIFIERS, name, name, "m:C", f"rlvr-plugin-{name}", "0.3.1", {})
    entry = PluginEntry.model_validate(name)
    plugin = ref.construct_with(cls, cls.Config())
    return LoadedPlugin(ref, entry, plugin, "stack.yaml:5:5 (verifiers[0])")


def plugin_with(hook: str, function: Callable[..., Any], **options: bool) -> type[Plugin]:
    """Return a plugin class with one hook implementation."""
    return type("Made", (Plugin,), {"api_version": "1.0", hook: hookimpl(**options)(function)})


def dispatcher(hook: str, *functions: Callable[..., Any]) -> Dispatcher:
    plugins = [
        loaded(plugin_with(hook, function), f"p{place}") for place, function in enumerate(functions)
    ]
    return Dispatcher(plugins)


def rewards_of(groups: Sequence[Group]) -> list[list[float | None]]:
    return [[rollout.reward for rollout in one.rollouts] for one in groups]


# --- order


def test_a_chain_runs_in_file_order_each_on_what_the_one_before_returned() -> None:
    made = dispatcher(
        "rlvr_wrap_prompt",
        lambda self, prompt: prompt + "a",
        lambda self, prompt: prompt + "b",
        lambda self, prompt: prompt + "c",
    )

    assert made.wrap_prompt("", ROWS[0], SESSION) == "abc"


def test_the_first_wrapper_of_the_file_is_outermost_and_sees_the_value() -> None:
    calls: list[str] = []

    def wrapper(name: str) -> type[Plugin]:
        def around(self: Plugin, prompt: str) -> Any:
            calls.append(f"{name} in")
            result = yield
            calls.append(f"{name} out {result}")
            return result + name

        return plugin_with("rlvr_wrap_prompt", around, wrapper=True)

    made = Dispatcher(
        [
            loaded(wrapper("w"), "w"),
            loaded(plugin_with("rlvr_wrap_prompt", lambda self, prompt: prompt + "!"), "p"),
            loaded(wrapper("v"), "v"),
        ]
    )

    assert made.wrap_prompt("x", ROWS[0], SESSION) == "x!vw"
    assert calls == ["w in", "v in", "v out x!", "w out x!v"]


def test_a_class_is_refused_at_registration() -> None:
    one = loaded(plugin_with("rlvr_keep_groups", lambda self, groups: []))
    broken = LoadedPlugin(one.ref, one.entry, cast(Plugin, type(one.plugin)), one.origin)

    with pytest.raises(PluginError, match="is a class, not an instance") as caught:
        Dispatcher([broken])

    assert caught.value.code == "RLVR-P104"


def test_pluggys_own_refusal_is_blamed_on_the_plugin() -> None:
    with pytest.raises(PluginError) as caught:
        Dispatcher([loaded(plugin_with("rlvr_keep_groups", lambda self, grops: []))])

    assert caught.value.code == "RLVR-P104"
    assert "grops" in str(caught.value.cause)
    assert caught.value.origin == "rlvr-plugin-mine 0.3.1"


# --- blame


def test_an_exception_names_plugin_version_and_hook_and_keeps_its_cause() -> None:
    def broken(self: Plugin, groups: Any) -> None:
        raise ValueError("out of cheese")

    made = dispatcher("rlvr_keep_groups", lambda self, groups: [True], broken)

    with pytest.raises(PluginError) as caught:
        made.keep_groups([group(1.0, 0.0)], SESSION)

    assert caught.value.code == "RLVR-P106"
    assert "'p1': rlvr_keep_groups raised" in caught.value.message
    assert caught.value.origin is not None
    assert caught.value.origin.startswith("rlvr-plugin-p1 0.3.1")
    assert caught.value.cause == "ValueError: out of cheese"
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_wrapper_that_raises_is_blamed_and_not_the_plugin_inside() -> None:
    def around(self: Plugin, groups: Any) -> Any:
        yield
        raise ValueError("wrapper")

    made = Dispatcher(
        [
            loaded(plugin_with("rlvr_keep_groups", around, wrapper=True), "outer"),
            loaded(plugin_with("rlvr_keep_groups", lambda self, groups: [True]), "inner"),
        ]
    )

    with pytest.raises(PluginError, match="'outer'"):
        made.keep_groups([group(1.0, 0.0)], SESSION)


def test_a_plugin_inside_a_wrapper_is_blamed_for_its_own_exception() -> None:
    def around(self: Plugin, groups: Any) -> Any:
        return (yield)

    def broken(self: Plugin, groups: Any) -> Any:
        raise SystemExit(3)

    made = Dispatcher(
        [
            loaded(plugin_with("rlvr_keep_groups", around, wrapper=True), "outer"),
            loaded(plugin_with("rlvr_keep_groups", broken), "inner"),
        ]
    )

    with pytest.raises(PluginError, match="'inner'"):
        made.keep_groups([group(1.0, 0.0)], SESSION)


def test_an_error_of_core_passes_through_a_plugin_unblamed() -> None:
    def asks_session(self: Plugin, session: Any, groups: Any) -> Any:
        raise RunEndedError("RLVR-T103", "the budget is spent")

    with pytest.raises(RunEndedError):
        dispatcher("rlvr_rescue_groups", asks_session).rescue_groups(SESSION, [group(1.0)])


# --- stages 0 to 2


def test_audit_findings_carry_the_name_of_their_plugin() -> None:
    finding = Finding(severity=Severity.WARN, message="m")
    made = dispatcher("rlvr_audit_prompts", lambda self: [finding], lambda self: None)

    assert made.audit_prompts(ROWS, SESSION) == [("p0", finding)]


def test_selected_rows_are_counted() -> None:
    made = dispatcher("rlvr_select_prompts", lambda self, rows, count: rows[: count - 1])

    with pytest.raises(PluginError, match="rlvr_select_prompts") as caught:
        made.select_prompts(ROWS, 3, SESSION)

    assert "expected 3 rows, got 2" in str(caught.value.cause)


def test_none_from_a_hook_that_must_answer_is_its_fault() -> None:
    with pytest.raises(PluginError) as caught:
        dispatcher("rlvr_select_prompts", lambda self: None).select_prompts(ROWS, 1, SESSION)

    assert "expected 1 rows, got None" in str(caught.value.cause)


def test_a_hook_that_nobody_answers_is_said() -> None:
    with pytest.raises(StackError, match="answers rlvr_select_prompts"):
        Dispatcher([]).select_prompts(ROWS, 1, SESSION)


def test_groups_must_follow_the_rows() -> None:
    def swapped(self: Plugin, rows: Any) -> list[Group]:
        return [group(1.0, row=row) for row in reversed(rows)]

    with pytest.raises(PluginError) as caught:
        dispatcher("rlvr_sample_groups", swapped).sample_groups(SESSION, ROWS)

    assert "expected the group of row '0' at 0, got '2'" in str(caught.value.cause)


def test_a_wrapped_prompt_must_be_a_prompt() -> None:
    with pytest.raises(PluginError):
        dispatcher("rlvr_wrap_prompt", lambda self: 3).wrap_prompt("x", ROWS[0], SESSION)


# --- stage 3


class Judge(RowVerifier):
    api_version = "1.0"
    GroundTruth = Strict

    def verify_row(self, row: VerifyRow) -> Verdict:
        raise AssertionError("a verifier must not run in the training process")

    @hookimpl
    def rlvr_run_end(self, status: str) -> None:
        self.ended = status


BATCH = VerifyBatch(rows=[VerifyRow(id="0", prompt="p", completion="c", ground_truth=None)])


def test_verification_goes_to_the_workers_of_the_named_verifier_only() -> None:
    asked: list[str] = []

    def in_workers(name: str, batch: VerifyBatch) -> list[Verdict]:
        asked.append(name)
        return [Verdict(status=Status.PASSED, score=1.0) for _ in batch]

    made = Dispatcher([loaded(Judge, "one"), loaded(Judge, "two")], in_workers)

    assert [verdict.status for verdict in made.verify("two", BATCH)] == ["passed"]
    assert asked == ["two"]
    assert not Dispatcher([loaded(Judge, "one")]).has("rlvr_verify")


def test_wrappers_of_verification_run_in_the_training_process() -> None:
    def around(self: Plugin, batch: VerifyBatch) -> Any:
        verdicts = yield
        return [Verdict(status=verdict.status, score=0.5) for verdict in verdicts]

    made = Dispatcher(
        [loaded(Judge, "one"), loaded(plugin_with("rlvr_verify", around, wrapper=True), "w")],
        lambda name, batch: [Verdict(status=Status.PASSED, score=1.0)],
    )

    assert [verdict.score for verdict in made.verify("one", BATCH)] == [0.5]


def test_other_hooks_of_a_verifier_still_run_in_the_training_process() -> None:
    judge = loaded(Judge, "one")
    made = Dispatcher([judge], lambda name, batch: [])

    made.run_end(RUN, "finished")

    assert cast(Judge, judge.plugin).ended == "finished"


def test_verdicts_are_counted_and_unknown_verifiers_named() -> None:
    made = Dispatcher([loaded(Judge, "one")], lambda name, batch: [])

    with pytest.raises(PluginError) as short:
        made.verify("one", BATCH)
    with pytest.raises(StackError) as unknown:
        made.verify("two", BATCH)

    assert "expected 1 verdicts, got 0" in str(short.value.cause)
    assert unknown.value.code == "RLVR-V103"
    assert "one" in str(unknown.value.cause)


# --- stages 4 to 7


def test_rescued_groups_are_settled_before_the_next_plugin_sees_them() -> None:
    def adds_one(self: Plugin, groups: Any) -> Any:
        assert all(rollout.reward is not None for one in groups for rollout in one.rollouts)
        for one in groups:
            one.rollouts.append(group(None).rollouts[0])
        return groups

    def settle(groups: Sequence[Group]) -> None:
        for one in groups:
            for rollout in one.rollouts:
                rollout.reward = rollout.reward or 0.0

    made = dispatcher("rlvr_rescue_groups", adds_one, adds_one)

    [rescued] = made.rescue_groups(SESSION, [group(1.0)], settle)

    assert len(rescued.rollouts) == 3


def test_rewards_are_shaped_in_turn_and_masks_stay() -> None:
    def add(amount: float) -> Callable[..., Any]:
        return lambda self, groups: [
            [None if r.reward is None else r.reward * 2 + amount for r in one.rollouts]
            for one in groups
        ]

    groups = [group(1.0, None), group(0.0)]

    dispatcher("rlvr_shape_rewards", add(1), add(0)).shape_rewards(SESSION, groups)

    assert rewards_of(groups) == [[6.0, None], [2.0]]


BAD_REWARDS = {
    "too few groups": ([[1.0, 1.0]], "expected 2 lists of rewards, got 1"),
    "too few rewards": ([[1.0], [1.0]], "expected 2 rewards in group 0, got 1"),
    "one number for all": (1.0, "expected 2 lists of rewards, got float 1.0"),
    "not a number": ([[math.nan, None], [1.0]], "expected a finite number or None for rollout 0"),
    "infinite": ([[math.inf, None], [1.0]], "expected a finite number"),
    "text": ([["1", None], [1.0]], "got str '1'"),
    "unmasked": ([[1.0, 1.0], [1.0]], "expected None for rollout 1 of group 0, which is masked"),
    "nothing": (None, "got None"),
}


@pytest.mark.parametrize("hook", ["shape_rewards", "gate_rewards"])
@pytest.mark.parametrize("case", BAD_REWARDS)
def test_rewards_of_a_wrong_form_are_refused_and_nothing_is_changed(case: str, hook: str) -> None:
    returned, said = BAD_REWARDS[case]
    groups = [group(0.5, None), group(0.25)]
    made = dispatcher(f"rlvr_{hook}", lambda self: returned)

    with pytest.raises(PluginError) as caught:
        getattr(made, hook)(SESSION, groups)

    assert said in str(caught.value.cause)
    assert rewards_of(groups) == [[0.5, None], [0.25]]


def test_a_control_replaces_stage_5_and_the_gate_still_has_the_last_word() -> None:
    def all_to(value: float) -> Callable[..., Any]:
        return lambda self, groups: [[value for _ in one.rollouts] for one in groups]

    def halve(self: Plugin, groups: Any) -> Any:
        return [[r.reward / 2 for r in one.rollouts] for one in groups]

    def two_more(self: Plugin, groups: Any) -> Any:
        return [[r.reward + 2 for r in one.rollouts] for one in groups]

    groups = [group(1.0, 0.0)]
    made = Dispatcher(
        [
            loaded(plugin_with("rlvr_shape_rewards", all_to(7.0)), "shaper"),
            loaded(plugin_with("rlvr_gate_rewards", halve), "gate"),
        ],
        control=loaded(plugin_with("rlvr_shape_rewards", two_more), "control"),
    )

    made.shape_rewards(SESSION, groups)
    made.gate_rewards(SESSION, groups)

    assert rewards_of(groups) == [[1.5, 1.0]]


def test_groups_are_kept_when_every_plugin_keeps_them() -> None:
    made = dispatcher(
        "rlvr_keep_groups", lambda self: [True, True, False], lambda self: [True, False, True]
    )

    assert made.keep_groups([group(1.0)] * 3, SESSION) == [True, False, False]
    assert Dispatcher([]).keep_groups([group(1.0)] * 2, SESSION) == [True, True]


@pytest.mark.parametrize("returned", [[True], [True, None], ["yes", "no"], None])
def test_keeps_of_a_wrong_form_are_refused(returned: Any) -> None:
    with pytest.raises(PluginError):
        dispatcher("rlvr_keep_groups", lambda self: returned).keep_groups([group(1.0)] * 2, SESSION)


# --- stages 8 and 9


def test_every_group_is_estimated_and_masked_rollouts_get_exactly_zero() -> None:
    seen: list[int] = []

    def estimate(self: Plugin, groups: Any) -> Any:
        seen.append(len(groups))
        return [[math.nan if r.reward is None else 1.5 for r in one.rollouts] for one in groups]

    made = dispatcher("rlvr_estimate_advantages", estimate)
    groups = [group(1.0, 1.0), group(1.0, None, 0.0), group(1.0, None)]

    assert made.estimate_advantages(groups, SESSION) == [[1.5, 1.5], [1.5, 0.0, 1.5], [1.5, 0.0]]
    assert made.estimate_advantages([], SESSION) == []
    assert seen == [3, 0]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([[1.0]], "expected 2 advantages in group 0, got 1"),
        ([[1.0, math.inf]], "expected a finite number for rollout 1 of group 0"),
        ([[1.0, None]], "expected a finite number"),
        ([[1.0, [1.0, 2.0]]], "expected a finite number"),
    ],
)
def test_advantages_of_a_wrong_form_are_refused(returned: Any, said: str) -> None:
    made = dispatcher("rlvr_estimate_advantages", lambda self: returned)

    with pytest.raises(PluginError) as caught:
        made.estimate_advantages([group(1.0, 0.0)], SESSION)

    assert said in str(caught.value.cause)


def test_adjusted_advantages_may_be_one_for_each_token() -> None:
    made = dispatcher(
        "rlvr_adjust_advantages",
        lambda self, advantages: [[[1.0, 2.0], 9.0, advantages[0][2]]],
        lambda self, advantages: advantages,
    )

    adjusted = made.adjust_advantages([group(1.0, None, 0.0)], [[1.0, 0.0, -1.0]], SESSION)

    assert adjusted == [[[1.0, 2.0], 0.0, -1.0]]


def test_token_advantages_must_match_the_length_of_their_rollout() -> None:
    made = dispatcher("rlvr_adjust_advantages", lambda self: [[[1.0, 2.0, 3.0]]])

    with pytest.raises(PluginError) as caught:
        made.adjust_advantages([group(1.0, tokens=2)], [[1.0]], SESSION)

    assert "expected 2 numbers for rollout 0 of group 0, got 3" in str(caught.value.cause)


# --- stages 10 and 11


def test_token_weights_are_multiplied_and_losses_checked() -> None:
    torch = pytest.importorskip("torch")
    from rlvr_core.api import PolicyLoss, TokenBatch

    tokens = TokenBatch(
        rollouts=[],
        rollout_T=torch.zeros(2, dtype=torch.int64),
        logp_T=torch.zeros(2, requires_grad=True),
        old_logp_T=torch.zeros(2),
        advantage_T=torch.ones(2),
    )
    weights = dispatcher(
        "rlvr_weigh_tokens",
        lambda self: torch.tensor([2.0, 3.0]),
        lambda self: torch.tensor([0.5, 1.0]),
    )

    product = weights.weigh_tokens(tokens, SESSION)

    assert product is not None
    assert product.tolist() == [1.0, 3.0]
    assert Dispatcher([]).weigh_tokens(tokens, SESSION) is None
    for bad in (torch.ones(3), torch.tensor([1.0, math.nan]), [1.0, 1.0], None):
        with pytest.raises(PluginError):
            dispatcher("rlvr_weigh_tokens", lambda self, b=bad: b).weigh_tokens(tokens, SESSION)

    def loss(loss_T: Any) -> Dispatcher:
        return dispatcher("rlvr_policy_loss", lambda self: PolicyLoss(loss_T=loss_T))

    assert loss(-tokens.logp_T).policy_loss(tokens, SESSION).loss_T.shape == (2,)
    for bad in (-tokens.logp_T.detach(), tokens.logp_T.sum(), None):
        with pytest.raises(PluginError):
            loss(bad).policy_loss(tokens, SESSION)


# --- observers

STEP = StepEvent(run=RUN, step=1, groups=[], metrics={})
WARN = Action(kind=ActionKind.WARN, reason="r")


def test_an_observer_that_raises_is_written_down_and_the_others_are_called() -> None:
    def broken(self: Plugin, event: Any) -> None:
        raise ValueError("no such metric")

    made = dispatcher(
        "rlvr_step_end", lambda self: WARN, broken, lambda self: [WARN, WARN], lambda self: None
    )

    assert made.step_end(STEP) == [("p0", WARN), ("p2", WARN), ("p2", WARN)]
    [fault] = made.faults
    assert (fault.plugin, fault.hook) == ("p1", "rlvr_step_end")
    assert fault.blame == "rlvr-plugin-p1 0.3.1"
    assert "no such metric" in fault.message
    assert "in broken" in fault.traceback


@pytest.mark.parametrize("returned", ["stop", [1], 3])
def test_an_observer_that_returns_no_action_is_written_down(returned: Any) -> None:
    made = dispatcher("rlvr_eval_end", lambda self: returned)

    event = EvalEvent(run=RUN, step=1, split="dev", rollouts=[], metrics={})

    assert made.eval_end(event) == []
    assert len(made.faults) == 1


def test_ctrl_c_in_an_observer_ends_the_run() -> None:
    def interrupted(self: Plugin) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dispatcher("rlvr_run_start", interrupted).run_start(RUN)


def test_rows_that_observers_add_carry_their_name() -> None:
    def canaries(self: Plugin, split: str) -> Any:
        return ROWS[:1] if split == "dev" else None

    judge = plugin_with("rlvr_verify", lambda self, batch: [])
    watcher = plugin_with("rlvr_eval_prompts", canaries)
    made = Dispatcher([loaded(judge, "judge"), loaded(watcher, "p0")], lambda name, batch: [])

    assert made.eval_prompts("dev", 0) == [("p0", ROWS[0])]
    assert made.eval_prompts("transfer", 0) == []


def test_rows_for_a_verifier_that_is_not_there_are_the_observers_fault() -> None:
    made = dispatcher("rlvr_eval_prompts", lambda self, split: ROWS[:1])

    assert made.eval_prompts("dev", 0) == []
    assert "'judge', which is no verifier of the stack" in made.faults[0].message


# --- what the stack needs


def test_needs_are_collected_and_hooks_are_known() -> None:
    class Greedy(Plugin):
        api_version = "1.0"

        @property
        def needs(self) -> frozenset[Need]:
            return frozenset({Need.ENTROPY})

        @hookimpl
        def rlvr_policy_loss(self, tokens: Any) -> Any: ...

    greedy = loaded(Greedy)
    made = Dispatcher([greedy])

    assert made.needs == {Need.ENTROPY}
    assert Dispatcher([]).needs == frozenset()
    assert made.has("rlvr_policy_loss")
    assert not made.has("rlvr_weigh_tokens")
    assert made.answering("rlvr_policy_loss") is greedy
