"""Calling a hook of one plugin: with the wrappers around it, and whoever is at fault named.

Nothing is known here of what each hook is for; that is `rlvr_core.plugins.dispatch`.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rlvr_core.api.errors import RlvrError, exception_text
from rlvr_core.api.markers import hookimpl
from rlvr_core.api.plugin import VerifyBatch
from rlvr_core.api.verdicts import Verdict
from rlvr_core.plugins.border import Unfit
from rlvr_core.plugins.calls import Call, PluginFault
from rlvr_core.plugins.failures import hook_failure, is_out_of_memory
from rlvr_core.plugins.manager import RoutedManager
from rlvr_core.plugins.resolve import LoadedPlugin
from rlvr_core.plugins.stages import VERIFY

T = TypeVar("T")
VerifyCallable = Callable[[str, VerifyBatch], Sequence[Verdict]]

_ENGINES = ("rlvr_core.rollout.", "rlvr_core.verification.", "rlvr_core.train.policy")
"""Modules that work for the session; what they raise is no plugin's fault."""


class PluginCaller:
    """Calls hooks of a stack's plugins, one plugin at a time.

    Args:
        plugins: In call order.
        verify: Judges a batch by the verifier of that instance name, in worker processes. Without
            it, no plugin can be called to verify.
        on_call: Told of the innermost call that goes on, whenever it is another one.
    """

    def __init__(
        self,
        plugins: Sequence[LoadedPlugin],
        verify: VerifyCallable | None,
        on_call: Callable[[Call | None], None],
    ) -> None:
        self.faults: list[PluginFault] = []
        """Of `observe`, in the order they happened. Core takes out what it has logged."""
        self._on_call = on_call
        self._running: Call | None = None
        self._manager = RoutedManager()
        self._proxies: dict[str, _InWorkers] = {}
        self._by_plugin: dict[int, LoadedPlugin] = {id(one.plugin): one for one in plugins}
        # The last registered is called first: file order is call order.
        for loaded in reversed(plugins):
            self._manager.register_loaded(loaded)
            if verify is not None and loaded.answers(VERIFY):
                self._register_proxy(loaded, verify)

    @property
    def verifiers(self) -> Mapping[str, LoadedPlugin]:
        """Instance name -> plugin, for those that can be called to verify."""
        return {name: self._by_plugin[id(proxy)] for name, proxy in self._proxies.items()}

    def answering(self, hook: str) -> list[LoadedPlugin]:
        """Return the plugins that implement `hook` themselves, in call order."""
        return [self._by_plugin[id(plugin)] for plugin in self._manager.answering(hook)]

    def call(
        self, loaded: LoadedPlugin, hook: str, check: Callable[[Any], T], **arguments: object
    ) -> T:
        """Call a hook of one plugin, and return what `check` makes of its result.

        Args:
            loaded: The plugin.
            hook: Its hook, with all wrappers of other plugins around it.
            check: Returns clean data, or raises `border.Unfit`.
            arguments: All that the hook offers.

        Raises:
            PluginError: RLVR-P106, the plugin raised or returned what it may not; or a wrapper did.
            RlvrError: What the session refused, which the plugin had called.
        """
        target = self._proxies[loaded.name] if hook == VERIFY else loaded.plugin
        outer, self._running = self._running, Call(loaded.name, hook, time.monotonic())
        self._on_call(self._running)
        try:
            return check(self._manager.caller(hook, target)(**arguments))
        except RlvrError:
            # Not the plugin's own: it called the session, and the session refused.
            raise
        except Unfit as exc:
            # What workers return is checked there, so it was a wrapper that changed it.
            at_fault = next(iter(self._wrapping(hook)), loaded) if hook == VERIFY else loaded
            cause = f"returned something it may not return: {exc}"
            raise hook_failure(at_fault, f"{hook} is at fault", cause) from exc
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            if is_out_of_memory(exc) or _passed_through_core(exc):
                raise
            raised_in = self._by_plugin.get(id(self._manager.culprit(hook, exc)), loaded)
            raise hook_failure(raised_in, f"{hook} raised", exception_text(exc)) from exc
        finally:
            self._running = outer
            self._on_call(outer)

    def observe(
        self, hook: str, check: Callable[[Any], T], **arguments: object
    ) -> list[tuple[str, T]]:
        """Call each observer alone; what fails is written down, and the run goes on.

        Returns:
            (instance name, result) of those that did not fail.
        """
        results = []
        for loaded in self.answering(hook):
            try:
                results.append((loaded.name, self.call(loaded, hook, check, **arguments)))
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

    def _wrapping(self, hook: str) -> list[LoadedPlugin]:
        return [self._by_plugin[id(plugin)] for plugin in self._manager.wrapping(hook)]

    def _register_proxy(self, loaded: LoadedPlugin, verify: VerifyCallable) -> None:
        proxy = _InWorkers(loaded.name, verify)
        self._manager.proxies.add(id(proxy))
        self._proxies[loaded.name] = proxy
        self._by_plugin[id(proxy)] = loaded
        self._manager.register(proxy, f"{loaded.name} in workers")


class _InWorkers:
    """Stands in the training process for one verifier that runs in worker processes."""

    def __init__(self, name: str, verify: VerifyCallable) -> None:
        self._name = name
        self._verify = verify

    @hookimpl
    def rlvr_verify(self, batch: VerifyBatch) -> Sequence[Verdict]:
        return self._verify(self._name, batch)


def _passed_through_core(exc: BaseException) -> bool:
    """Tell whether core's own engines failed, which a plugin had called through the session."""
    frames = traceback.walk_tb(exc.__traceback__)
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in frames]
    return any(module.startswith(_ENGINES) for module in modules)
