"""Phase two of a stack: find, import, check and construct the plugins that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from rlvr_core.api.errors import RlvrError, StackError
from rlvr_core.api.plugin import Family, Plugin, Resource, Strict, Verifier, normalised
from rlvr_core.api.verdicts import Json
from rlvr_core.config.load import StackFile
from rlvr_core.config.models import PluginEntry, Stack
from rlvr_core.config.positions import Problem
from rlvr_core.config.wording import said_of
from rlvr_core.config.yaml_source import Path
from rlvr_core.plugins.failures import combined
from rlvr_core.plugins.hooks import answers
from rlvr_core.plugins.index import PluginIndex
from rlvr_core.plugins.loader import Wanted, load_classes
from rlvr_core.plugins.members import complete
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.plugins.settings import validate_settings
from rlvr_core.plugins.stages import FIRST_RESULT_HOOKS, VERIFY

T = TypeVar("T")

DEFAULT_ANSWERS: Mapping[str, tuple[Family, str]] = {
    "rlvr_select_prompts": (Family.SAMPLERS, "uniform"),
    "rlvr_sample_groups": (Family.SAMPLERS, "fixed"),
    "rlvr_estimate_advantages": (Family.ADVANTAGE, "grpo"),
    "rlvr_policy_loss": (Family.ADVANTAGE, "ppo-clip"),
}
"""Who answers a first-result hook when no plugin of the stack does."""

DEFAULT_MONITORS = ("verifier-health", "dead-groups", "non-finite")
"""Monitors that every run has."""

_CONTROL: Path = ("control",)
"""Path of the control arm in a stack."""


@dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """One plugin of a stack, constructed."""

    ref: PluginRef
    entry: PluginEntry
    plugin: Plugin
    origin: str
    """Where the stack names it, as in ``stack.yaml:12:5 (verifiers[0])``."""
    is_default: bool = False
    """Core added it, the stack does not name it."""

    @property
    def family(self) -> Family:
        """The section of the stack that it stands in."""
        return self.ref.family

    @property
    def name(self) -> str:
        """Instance name."""
        return self.ref.name

    def answers(self, hook: str) -> bool:
        """Tell whether it implements `hook` itself, not only around others."""
        return answers(type(self.plugin), hook)


@dataclass(frozen=True, slots=True)
class ResolvedStack:
    """A stack whose plugins are ready, with every default filled in."""

    stack: Stack
    """Core's default plugins are among its entries, and all settings are complete."""
    plugins: tuple[LoadedPlugin, ...]
    """In call order; the control is not among them."""
    control: LoadedPlugin | None
    file: StackFile

    @property
    def verifiers(self) -> dict[str, LoadedPlugin]:
        """Instance name -> plugin, for those that judge completions."""
        return {loaded.name: loaded for loaded in self.plugins if loaded.answers(VERIFY)}


@dataclass(slots=True)
class _Candidate:
    """A plugin on its way from an entry of the stack to an instance."""

    wanted: Wanted
    entry: PluginEntry
    loc: Path
    cls: type[Plugin]
    is_default: bool
    config: BaseModel = field(default_factory=Strict)

    @property
    def is_control(self) -> bool:
        """True when it stands at ``control``, and not in a list of the stack."""
        return self.loc == _CONTROL

    def construct(self, index: PluginIndex) -> LoadedPlugin:
        plugin = self.wanted.ref.construct_with(self.cls, self.config)
        # With every default written out: a version must not depend on how a stack is spelt.
        ref = complete(self.wanted.ref, self.cls, self.config, self.wanted.origin, index)
        return LoadedPlugin(ref, self.entry, plugin, self.wanted.origin, self.is_default)


def resolve_stack(stack_file: StackFile, index: PluginIndex | None = None) -> ResolvedStack:
    """Load the plugins of a stack and fill in every default.

    Args:
        stack_file: A stack that passed phase one.
        index: What is installed; scanned when not given.

    Raises:
        StackError: A plugin is not installed (RLVR-S103), settings are not allowed (RLVR-S102), or
            plugins cannot be used together (RLVR-S104).
        PluginError: Plugins cannot be used, all of them in one error.
    """
    index = PluginIndex.scan() if index is None else index
    stack = stack_file.stack
    asked: list[tuple[Path, PluginEntry]] = [
        ((family.value, place), entry) for family, place, entry in stack.entries()
    ]
    if stack.control is not None:
        asked.append((_CONTROL, stack.control))
    candidates = _load(asked, index, stack_file)
    _check_together(candidates, stack_file)
    candidates += _load_defaults(candidates, index, stack_file)
    _validate(candidates, stack_file)
    order = list(Family)
    candidates.sort(key=lambda candidate: order.index(candidate.wanted.ref.family))
    constructs = [partial(candidate.construct, index) for candidate in candidates]
    loaded = list(zip(candidates, _each(constructs, "plugins cannot be used"), strict=True))
    if problems := list(_two_meanings(loaded)):
        raise stack_file.error(problems, "RLVR-S104")
    return ResolvedStack(
        stack=_filled(stack, loaded),
        plugins=tuple(plugin for candidate, plugin in loaded if not candidate.is_control),
        control=next((plugin for candidate, plugin in loaded if candidate.is_control), None),
        file=stack_file,
    )


def resolve_plugin(
    family: Family,
    name: str,
    config: Mapping[str, Json],
    instance_name: str | None = None,
    index: PluginIndex | None = None,
) -> PluginRef:
    """Find, import and check one plugin outside a stack.

    Raises:
        StackError: It is not installed, or its settings are not allowed.
        PluginError: It cannot be used.
    """
    index = PluginIndex.scan() if index is None else index
    installed = index.find(family, name, "command line")
    ref = installed.ref(instance_name or installed.name, dict(config))
    [cls] = load_classes([Wanted(installed, ref, "the command line")])
    validated, problems = validate_settings(cls, family, config, ())
    if validated is None or problems:
        inside = [replace(one, loc=one.loc[1:]) for one in problems]
        raise StackError(
            "RLVR-S102",
            f"the settings of {installed.name!r} are not allowed",
            origin=ref.blame,
            cause="\n".join(said_of(inside)),
            fix=f"rlvr plugins show {installed.name} --load lists its settings",
        )
    return complete(ref, cls, validated, "command line", index)


def _load(
    asked: Sequence[tuple[Path, PluginEntry]],
    index: PluginIndex,
    file: StackFile,
    is_default: bool = False,
) -> list[_Candidate]:
    finds = [partial(_find, loc, entry, index, file, is_default) for loc, entry in asked]
    wanted = _each(finds, "plugins cannot be found")
    classes = load_classes(wanted)
    return [
        _Candidate(one, entry, loc, cls, is_default)
        for one, (loc, entry), cls in zip(wanted, asked, classes, strict=True)
    ]


def _find(
    loc: Path, entry: PluginEntry, index: PluginIndex, file: StackFile, is_default: bool
) -> Wanted:
    # The control is registered among the verifiers: it replaces rewards.
    family = Family.VERIFIERS if loc == _CONTROL else Family(str(loc[0]))
    where = "core's defaults" if is_default else file.locate(loc)
    key = file.positions.show(loc)
    # What the command line gave is called by its key already.
    is_named = where.endswith(f": {key}")
    installed = index.find(family, entry.plugin, where if is_named else f"{where}: {key}")
    origin = where if is_default or is_named else f"{where} ({key})"
    return Wanted(installed, installed.ref(entry.name, entry.config), origin)


def _load_defaults(
    named: Sequence[_Candidate], index: PluginIndex, file: StackFile
) -> list[_Candidate]:
    taken = {candidate.entry.name for candidate in named}
    missing = [
        (family, plugin)
        for hook, (family, plugin) in DEFAULT_ANSWERS.items()
        if not any(answers(one.cls, hook) for one in named if not one.is_control)
    ]
    monitors = {
        normalised(one.wanted.ref.plugin)
        for one in named
        if one.wanted.ref.family is Family.MONITORS
    }
    missing += [(Family.MONITORS, name) for name in DEFAULT_MONITORS if name not in monitors]
    asked: list[tuple[Path, PluginEntry]] = []
    for family, plugin in missing:
        name = f"{plugin}-default" if plugin in taken else plugin
        asked.append(((family.value,), PluginEntry(name=name, plugin=plugin, config={})))
    return _load(asked, index, file, is_default=True)


def _validate(candidates: Sequence[_Candidate], file: StackFile) -> None:
    problems: list[Problem] = []
    for candidate in candidates:
        family = candidate.wanted.ref.family
        settings, loc = candidate.entry.config, candidate.loc
        config, wrong = validate_settings(candidate.cls, family, settings, loc)
        problems += wrong
        if config is not None:
            candidate.config = config
    if problems:
        raise file.error(problems)


def _check_together(candidates: Sequence[_Candidate], file: StackFile) -> None:
    problems = [
        *_two_answers(candidates, file),
        *_roles(candidates, file.stack),
        *_useless_concurrency(candidates),
    ]
    if problems:
        raise file.error(problems, "RLVR-S104")


def _two_answers(candidates: Sequence[_Candidate], file: StackFile) -> Iterator[Problem]:
    for hook in FIRST_RESULT_HOOKS:
        having = [one for one in candidates if answers(one.cls, hook) and not one.is_control]
        for other in having[1:]:
            yield Problem(
                other.loc,
                f"{other.entry.name!r} and {having[0].entry.name!r} "
                f"({file.locate(having[0].loc)}) both answer {hook}; keep one of them",
            )


def _roles(candidates: Sequence[_Candidate], stack: Stack) -> Iterator[Problem]:
    judges = {
        one.entry.name
        for one in candidates
        if one.loc[0] == Family.VERIFIERS.value and answers(one.cls, VERIFY)
    }
    if not judges:
        yield Problem(("verifiers",), "none of these judges completions (rlvr_verify)")
    for place, name in enumerate(stack.evaluate.also):
        if name not in judges:
            yield Problem(("evaluate", "also", place), f"{name!r} does not judge completions")
    for one in candidates:
        if one.is_control and not answers(one.cls, "rlvr_shape_rewards"):
            yield Problem(
                one.loc, f"{one.entry.name!r} is no control: it does not give rewards of its own"
            )


def _useless_concurrency(candidates: Sequence[_Candidate]) -> Iterator[Problem]:
    for one in candidates:
        is_service = issubclass(one.cls, Verifier) and one.cls.resource is Resource.IO
        if one.entry.concurrency is not None and not is_service:
            yield Problem(
                (*one.loc, "concurrency"),
                f"only has a meaning for a verifier that waits for a service, and "
                f"{one.entry.plugin!r} does not",
                is_about_key=True,
            )


def _two_meanings(loaded: Sequence[tuple[_Candidate, LoadedPlugin]]) -> Iterator[Problem]:
    """Yield members given by their name alone that an entry of the stack gives other settings."""
    by_name = {plugin.name: plugin for candidate, plugin in loaded if not candidate.is_control}
    for candidate, plugin in loaded:
        key = str(getattr(candidate.cls, "members_key", None))
        bare = [isinstance(one, str) for one in candidate.entry.config.get(key, ())]
        for place, one in enumerate(plugin.ref.members):
            same = by_name.get(one.entry.name)
            if same is None or same is plugin or not any(bare[place : place + 1]):
                continue
            if same.ref.plugin == one.ref.plugin and same.ref.config != one.ref.config:
                written = one.entry.name
                yield Problem(
                    (*candidate.loc, "config", key, place),
                    f"{written!r} has settings of its own in the stack, which do not hold for a "
                    f"member; write those of the member too: '{written}: {{…}}'",
                )


def _filled(stack: Stack, loaded: Sequence[tuple[_Candidate, LoadedPlugin]]) -> Stack:
    lists: dict[str, list[PluginEntry]] = {family.value: [] for family in Family}
    control = None
    for candidate, plugin in loaded:
        entry = plugin.entry.model_copy(update={"config": dict(plugin.ref.config)})
        if candidate.is_control:
            control = entry
        else:
            lists[plugin.family.value].append(entry)
    return stack.model_copy(update={**lists, "control": control})


def _each(calls: Sequence[Callable[[], T]], what: str) -> list[T]:
    """Make every call; raise one error for all that failed."""
    results, errors = [], []
    for call in calls:
        try:
            results.append(call())
        except RlvrError as error:
            errors.append(error)
    if errors:
        raise combined(errors, what) from errors[0].__cause__
    return results
