"""The only module that calls hooks: typed, one method a hook, what comes back is checked.

Wrappers (``wrapper=True``) of any plugin run around each call and see the value that the called
plugin returned.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rlvr_core.api.errors import PluginError, RlvrError, StackError, listed
from rlvr_core.api.events import Action, EvalEvent, Finding, RunInfo, StepEvent
from rlvr_core.api.markers import hookimpl
from rlvr_core.api.plugin import VerifyBatch
from rlvr_core.api.rollouts import Group, Prompt, Row
from rlvr_core.api.session import Need, PolicyLoss, Session, TokenBatch
from rlvr_core.api.verdicts import Verdict
from rlvr_core.plugins import border
from rlvr_core.plugins.calls import Call, PluginFault
from rlvr_core.plugins.failures import exception_text, is_out_of_memory
from rlvr_core.plugins.manager import VERIFY, RoutedManager
from rlvr_core.plugins.resolve import LoadedPlugin

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

_ENGINES = ("rlvr_core.rollout.", "rlvr_core.verification.", "rlvr_core.train.policy")
"""Modules that work for the session; what they raise is no plugin's fault."""
VerifyCallable = Callable[[str, VerifyBatch], Sequence[Verdict]]


class _InWorkers:
    """Stands in the training process for one verifier that runs in worker processes."""

    def __init__(self, name: str, verify: VerifyCallable) -> None:
        self._name = name
        self._verify = verify

    @hookimpl
    def rlvr_verify(self, batch: VerifyBatch) -> Sequence[Verdict]:
        return self._verify(self._name, batch)


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
        self.faults: list[PluginFault] = []
        """Observers' faults, in the order they happened. Core takes out what it has logged."""
        self.on_call: Callable[[Call | None], None] = lambda call: None
        """Told of the innermost call that goes on, whenever it is another one."""
        self._running: Call | None = None
        self._control = control
        self._manager = RoutedManager()
        self._proxies: dict[str, _InWorkers] = {}
        self._by_plugin: dict[int, LoadedPlugin] = {id(one.plugin): one for one in self.plugins}
        # The last registered is called first: file order is call order.
        for loaded in reversed(self.plugins):
            self._manager.register_loaded(loaded)
            if verify is not None and loaded.answers(VERIFY):
                self._register_proxy(loaded, verify)

    @property
    def needs(self) -> frozenset[Need]:
        """Per-token quantities that some plugin reads."""
        return frozenset[Need]().union(*(loaded.plugin.needs for loaded in self.plugins))

    def has(self, hook: str) -> bool:
        """Tell whether some plugin implements `hook` itself."""
        return bool(self._answering(hook))

    def answering(self, hook: str) -> LoadedPlugin:
        """Return the plugin that answers a first-result hook.

        Raises:
            StackError: No plugin of the stack does.
        """
        found = self._answering(hook)
        if not found:
            raise StackError("RLVR-S104", f"no plugin of the stack answers {hook}")
        return found[0]

    def audit_prompts(self, rows: Sequence[Row], session: Session) -> list[tuple[str, Finding]]:
        """Stage 0: return (instance name, finding) of every plugin."""
        return [
            (loaded.name, finding)
            for loaded in self._answering("rlvr_audit_prompts")
            for finding in self._call(
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
        return self._call(
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
        for loaded in self._answering(hook):
            prompt = self._call(
                loaded, hook, border.prompt, prompt=prompt, row=row, session=session
            )
        return prompt

    def sample_groups(self, session: Session, rows: Sequence[Row]) -> list[Group]:
        """Stage 2: return one group for each row, in row order."""
        hook = "rlvr_sample_groups"
        return self._call(
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
        proxy = self._proxies.get(name)
        if proxy is None:
            raise StackError(
                "RLVR-V103",
                f"no verifier is named {name!r}",
                cause=f"verifiers of the stack: {listed(self._proxies) or 'none'}",
            )
        loaded = next(one for one in self.plugins if one.name == name)
        return self._call(
            loaded, VERIFY, lambda returned: border.verdicts(returned, len(batch)), batch=batch
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
        for loaded in self._answering(hook):
            current = self._call(
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
        shapers = self._answering(hook) if self._control is None else [self._control]
        self._reward_chain(hook, shapers, session, groups)

    def gate_rewards(self, session: Session, groups: Sequence[Group]) -> None:
        """Stage 6: set `rollout.reward` by each gate in turn."""
        hook = "rlvr_gate_rewards"
        self._reward_chain(hook, self._answering(hook), session, groups)

    def keep_groups(self, groups: Sequence[Group], session: Session) -> list[bool]:
        """Stage 7: return for each group whether all plugins keep it."""
        hook, keep = "rlvr_keep_groups", [True] * len(groups)
        for loaded in self._answering(hook):
            said = self._call(
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
        return self._call(
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
        for loaded in self._answering(hook):
            current = self._call(
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
        for loaded in self._answering(hook):
            weight_T = self._call(
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
        return self._call(
            self.answering(hook),
            hook,
            lambda returned: border.loss(returned, tokens),
            tokens=tokens,
            session=session,
        )

    def run_start(self, run: RunInfo) -> None:
        """Tell observers that the run is about to make its first step."""
        self._observe("rlvr_run_start", lambda returned: None, run=run)

    def step_end(self, event: StepEvent) -> list[tuple[str, Action]]:
        """Tell observers of a finished step; return (instance name, action)."""
        return _flat(self._observe("rlvr_step_end", border.actions, event=event))

    def eval_prompts(self, split: str, step: int) -> list[tuple[str, Row]]:
        """Ask observers for rows to add to an evaluation; return (instance name, row)."""
        return _flat(
            self._observe(
                "rlvr_eval_prompts",
                lambda returned: border.canaries(returned, self._proxies),
                split=split,
                step=step,
            )
        )

    def eval_end(self, event: EvalEvent) -> list[tuple[str, Action]]:
        """Tell observers of a finished evaluation; return (instance name, action)."""
        return _flat(self._observe("rlvr_eval_end", border.actions, event=event))

    def run_end(self, run: RunInfo, status: str) -> list[tuple[str, Action]]:
        """Tell observers that the run is over; return (instance name, action)."""
        return _flat(self._observe("rlvr_run_end", border.actions, run=run, status=status))

    def _register_proxy(self, loaded: LoadedPlugin, verify: VerifyCallable) -> None:
        proxy = _InWorkers(loaded.name, verify)
        self._manager.proxies.add(id(proxy))
        self._proxies[loaded.name] = proxy
        self._by_plugin[id(proxy)] = loaded
        self._manager.register(proxy, f"{loaded.name} in workers")

    def _answering(self, hook: str) -> list[LoadedPlugin]:
        return [self._by_plugin[id(plugin)] for plugin in self._manager.answering(hook)]

    def _wrapping(self, hook: str) -> list[LoadedPlugin]:
        return [self._by_plugin[id(plugin)] for plugin in self._manager.wrapping(hook)]

    def _reward_chain(
        self,
        hook: str,
        plugins: Sequence[LoadedPlugin],
        session: Session,
        groups: Sequence[Group],
    ) -> None:
        for loaded in plugins:
            rewards = self._call(
                loaded,
                hook,
                lambda returned: border.rewards(returned, groups),
                session=session,
                groups=groups,
            )
            for group, line in zip(groups, rewards, strict=True):
                for rollout, reward in zip(group.rollouts, line, strict=True):
                    rollout.reward = reward

    def _observe(
        self, hook: str, check: Callable[[Any], T], **arguments: object
    ) -> list[tuple[str, T]]:
        """Call each observer alone; what fails is written down, and the run goes on."""
        results = []
        for loaded in self._answering(hook):
            try:
                results.append((loaded.name, self._call(loaded, hook, check, **arguments)))
            except RlvrError as error:
                cause = error.__cause__ or error
                self.faults.append(
                    PluginFault(
                        plugin=loaded.name,
                        hook=hook,
                        blame=loaded.ref.blame,
                        message=f"{error.message}: {error.cause}",
                        traceback="".join(traceback.format_exception(cause)),
                    )
                )
        return results

    def _call(
        self, loaded: LoadedPlugin, hook: str, check: Callable[[Any], T], **arguments: object
    ) -> T:
        target = self._proxies[loaded.name] if hook == VERIFY else loaded.plugin
        outer, self._running = self._running, Call(loaded.name, hook, time.monotonic())
        self.on_call(self._running)
        try:
            return check(self._manager.caller(hook, target)(**arguments))
        except RlvrError:
            # Not the plugin's own: it called the session, and the session refused.
            raise
        except border.Unfit as exc:
            # What workers return is checked there, so it was a wrapper that changed it.
            at_fault = next(iter(self._wrapping(hook)), loaded) if hook == VERIFY else loaded
            raise _fault(at_fault, hook, f"returned something it may not return: {exc}") from exc
        except (Exception, SystemExit) as exc:
            if is_out_of_memory(exc) or _passed_through_core(exc):
                raise
            raised_in = self._by_plugin.get(id(self._manager.culprit(hook, exc)), loaded)
            raise _fault(raised_in, hook, exception_text(exc), raised=True) from exc
        finally:
            self._running = outer
            self.on_call(outer)


def _passed_through_core(exc: BaseException) -> bool:
    """Tell whether core's own engines failed, which a plugin had called through the session."""
    frames = traceback.walk_tb(exc.__traceback__)
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in frames]
    return any(module.startswith(_ENGINES) for module in modules)


def _fault(loaded: LoadedPlugin, hook: str, what: str, raised: bool = False) -> PluginError:
    return PluginError(
        "RLVR-P106",
        f"plugin {loaded.name!r}: {hook} {'raised' if raised else 'is at fault'}",
        origin=f"{loaded.ref.blame}, named by {loaded.origin}",
        cause=what,
        fix=f"upgrade {loaded.ref.distribution}, or take {loaded.name!r} out of the stack",
        report=loaded.ref.report_url,
    )


def _flat(results: list[tuple[str, list[T]]]) -> list[tuple[str, T]]:
    return [(name, one) for name, several in results for one in several]
