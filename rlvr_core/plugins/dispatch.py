"""How core calls hooks: typed, one method a hook, and what comes back is checked.

Wrappers (``wrapper=True``) of any plugin run around each call and see the value that the called
plugin returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from rlvr_core.api.errors import StackError, listed
from rlvr_core.api.events import Action, EvalEvent, Finding, RunInfo, StepEvent
from rlvr_core.api.plugin import VerifyBatch
from rlvr_core.api.rollouts import Group, Prompt, Row
from rlvr_core.api.session import Need, PolicyLoss, Session, TokenBatch
from rlvr_core.api.verdicts import Verdict
from rlvr_core.plugins import border
from rlvr_core.plugins.caller import PluginCaller, VerifyCallable
from rlvr_core.plugins.calls import Call
from rlvr_core.plugins.resolve import LoadedPlugin
from rlvr_core.plugins.stages import VERIFY

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")


class Dispatcher:
    """Calls the hooks of a stack's plugins in the order of the stack file.

    Args:
        plugins: In call order.
        verify: Judges a batch by the verifier of that instance name, in worker processes. Without
            it, `verify` cannot be called.
        control: Its rewards replace those of stage 5.
    """

    def __init__(
        self,
        plugins: Sequence[LoadedPlugin],
        verify: VerifyCallable | None = None,
        control: LoadedPlugin | None = None,
    ) -> None:
        self.plugins = (*plugins, *([control] if control else []))
        self.on_call: Callable[[Call | None], None] = lambda call: None
        """Told of the innermost call that goes on, whenever it is another one."""
        self._control = control
        self._caller = PluginCaller(self.plugins, verify, lambda call: self.on_call(call))
        self.faults = self._caller.faults
        """Observers' faults, in the order they happened. Core takes out what it has logged."""

    @property
    def needs(self) -> frozenset[Need]:
        """Per-token quantities that some plugin reads."""
        return frozenset[Need]().union(*(loaded.plugin.needs for loaded in self.plugins))

    def has(self, hook: str) -> bool:
        """Tell whether some plugin implements `hook` itself."""
        return bool(self._caller.answering(hook))

    def answering(self, hook: str) -> LoadedPlugin:
        """Return the plugin that answers a first-result hook.

        Raises:
            StackError: No plugin of the stack does.
        """
        found = self._caller.answering(hook)
        if not found:
            raise StackError("RLVR-S104", f"no plugin of the stack answers {hook}")
        return found[0]

    def audit_prompts(self, rows: Sequence[Row], session: Session) -> list[tuple[str, Finding]]:
        """Stage 0: return (instance name, finding) of every plugin."""
        return [
            (loaded.name, finding)
            for loaded in self._caller.answering("rlvr_audit_prompts")
            for finding in self._caller.call(
                loaded,
                "rlvr_audit_prompts",
                lambda returned: border.sequence_of(returned, Finding),
                rows=rows,
                session=session,
            )
        ]

    def select_prompts(self, rows: Sequence[Row], count: int, session: Session) -> list[Row]:
        """Stage 1: return the next `count` rows."""
        hook = "rlvr_select_prompts"
        return self._caller.call(
            self.answering(hook),
            hook,
            lambda returned: border.rows(returned, count),
            rows=rows,
            count=count,
            session=session,
        )

    def wrap_prompt(self, prompt: Prompt, row: Row, session: Session) -> Prompt:
        """Return the prompt that a row is sampled and trained under."""
        hook = "rlvr_wrap_prompt"
        for loaded in self._caller.answering(hook):
            prompt = self._caller.call(
                loaded, hook, border.prompt, prompt=prompt, row=row, session=session
            )
        return prompt

    def sample_groups(self, session: Session, rows: Sequence[Row]) -> list[Group]:
        """Stage 2: return one group for each row, in row order."""
        hook = "rlvr_sample_groups"
        return self._caller.call(
            self.answering(hook),
            hook,
            lambda returned: border.groups(returned, rows),
            session=session,
            rows=rows,
        )

    def verify(self, name: str, batch: VerifyBatch) -> list[Verdict]:
        """Stage 3: return one verdict a row, by the verifier of that instance name.

        Raises:
            StackError: No verifier has that name (RLVR-V103).
        """
        verifiers = self._caller.verifiers
        if name not in verifiers:
            raise StackError(
                "RLVR-V103",
                f"no verifier is named {name!r}",
                cause=f"verifiers of the stack: {listed(verifiers) or 'none'}",
            )
        return self._caller.call(
            verifiers[name],
            VERIFY,
            lambda returned: border.verdicts(returned, len(batch)),
            batch=batch,
        )

    def rescue_groups(
        self,
        session: Session,
        groups: Sequence[Group],
        settle: Callable[[Sequence[Group]], None] | None = None,
    ) -> list[Group]:
        """Stage 4: return the groups, rescued.

        Args:
            session: The session of the step.
            groups: One a prompt, with verdicts and scores as rewards.
            settle: Called after each plugin, to verify and score the rollouts that it added, so
                that the next plugin sees them judged.
        """
        hook, current = "rlvr_rescue_groups", list(groups)
        rows = [group.row for group in groups]
        for loaded in self._caller.answering(hook):
            current = self._caller.call(
                loaded,
                hook,
                lambda returned: border.groups(returned, rows),
                session=session,
                groups=current,
            )
            if settle is not None:
                settle(current)
        return current

    def shape_rewards(self, session: Session, groups: Sequence[Group]) -> None:
        """Stage 5: set `rollout.reward` by each plugin in turn; by the control alone if any."""
        hook = "rlvr_shape_rewards"
        shapers = self._caller.answering(hook) if self._control is None else [self._control]
        self._reward_chain(hook, shapers, session, groups)

    def gate_rewards(self, session: Session, groups: Sequence[Group]) -> None:
        """Stage 6: set `rollout.reward` by each gate in turn."""
        hook = "rlvr_gate_rewards"
        self._reward_chain(hook, self._caller.answering(hook), session, groups)

    def keep_groups(self, groups: Sequence[Group], session: Session) -> list[bool]:
        """Stage 7: return for each group whether all plugins keep it."""
        hook, keep = "rlvr_keep_groups", [True] * len(groups)
        for loaded in self._caller.answering(hook):
            said = self._caller.call(
                loaded,
                hook,
                lambda returned: border.keeps(returned, len(groups)),
                groups=groups,
                session=session,
            )
            keep = [before and now for before, now in zip(keep, said, strict=True)]
        return keep

    def estimate_advantages(
        self, groups: Sequence[Group], session: Session
    ) -> list[list[border.Advantage]]:
        """Stage 8: return advantages [N][G], exactly 0 where masked."""
        hook = "rlvr_estimate_advantages"
        return self._caller.call(
            self.answering(hook),
            hook,
            lambda returned: border.advantages(returned, groups, by_token=False),
            groups=groups,
            session=session,
        )

    def adjust_advantages(
        self,
        groups: Sequence[Group],
        advantages: Sequence[Sequence[border.Advantage]],
        session: Session,
    ) -> list[list[border.Advantage]]:
        """Stage 9: return advantages [N][G], a number or one for each token; 0 where masked."""
        hook, current = "rlvr_adjust_advantages", [list(line) for line in advantages]
        for loaded in self._caller.answering(hook):
            current = self._caller.call(
                loaded,
                hook,
                lambda returned: border.advantages(returned, groups, by_token=True),
                groups=groups,
                advantages=current,
                session=session,
            )
        return current

    def weigh_tokens(self, tokens: TokenBatch, session: Session) -> Tensor | None:
        """Stage 10: return the product of all weights, [T], or None when no plugin weighs."""
        hook, product = "rlvr_weigh_tokens", None
        for loaded in self._caller.answering(hook):
            weight_T = self._caller.call(
                loaded,
                hook,
                lambda returned: border.weights(returned, tokens),
                tokens=tokens,
                session=session,
            )
            product = weight_T if product is None else product * weight_T
        return product

    def policy_loss(self, tokens: TokenBatch, session: Session) -> PolicyLoss:
        """Stage 11: return the loss of each token."""
        hook = "rlvr_policy_loss"
        return self._caller.call(
            self.answering(hook),
            hook,
            lambda returned: border.loss(returned, tokens),
            tokens=tokens,
            session=session,
        )

    def run_start(self, run: RunInfo) -> None:
        """Tell observers that the run is about to make its first step."""
        self._caller.observe("rlvr_run_start", lambda returned: None, run=run)

    def step_end(self, event: StepEvent) -> list[tuple[str, Action]]:
        """Tell observers of a finished step; return (instance name, action)."""
        return _flat(self._caller.observe("rlvr_step_end", border.actions, event=event))

    def eval_prompts(self, split: str, step: int) -> list[tuple[str, Row]]:
        """Ask observers for rows to add to an evaluation; return (instance name, row)."""
        return _flat(
            self._caller.observe(
                "rlvr_eval_prompts",
                lambda returned: border.canaries(returned, self._caller.verifiers),
                split=split,
                step=step,
            )
        )

    def eval_end(self, event: EvalEvent) -> list[tuple[str, Action]]:
        """Tell observers of a finished evaluation; return (instance name, action)."""
        return _flat(self._caller.observe("rlvr_eval_end", border.actions, event=event))

    def run_end(self, run: RunInfo, status: str) -> list[tuple[str, Action]]:
        """Tell observers that the run is over; return (instance name, action)."""
        return _flat(self._caller.observe("rlvr_run_end", border.actions, run=run, status=status))

    def _reward_chain(
        self,
        hook: str,
        plugins: Sequence[LoadedPlugin],
        session: Session,
        groups: Sequence[Group],
    ) -> None:
        for loaded in plugins:
            rewards = self._caller.call(
                loaded,
                hook,
                lambda returned: border.rewards(returned, groups),
                session=session,
                groups=groups,
            )
            for group, line in zip(groups, rewards, strict=True):
                for rollout, reward in zip(group.rollouts, line, strict=True):
                    rollout.reward = reward


def _flat(results: list[tuple[str, list[T]]]) -> list[tuple[str, T]]:
    return [(name, one) for name, several in results for one in several]
