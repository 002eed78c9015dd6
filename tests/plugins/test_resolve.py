"""A stack becomes constructed plugins, with every default filled in. Needs core's own plugins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from rlvr_core.api import Family, PluginError, RlvrError, StackError
from rlvr_core.config.load import load_stack
from rlvr_core.plugins.index import PluginIndex
from rlvr_core.plugins.plan import plan_by_stage, resolved_yaml
from rlvr_core.plugins.resolve import ResolvedStack, resolve_plugin, resolve_stack
from rlvr_core.plugins.schema import stack_schema

from .conftest import MakeDistribution

pytest.importorskip("torch", reason="core's default loss needs it")

WriteStack = Callable[..., Path]

MANY = """
from rlvr_core.api import Plugin, RowVerifier, Strict, hookimpl
from pydantic import BaseModel, Field

class Loose(BaseModel):
    tolerance: float = Field(default=1e-6, gt=0)
    names: dict[str, int] = {"no": 1, "1e-6": 2}

class Made(RowVerifier):
    api_version = "1.0"
    GroundTruth = Strict
    Config = Loose
    def verify_row(self, row):
        return self.judge(1.0)

class Shaper(Plugin):
    api_version = "1.0"
    @hookimpl
    def rlvr_shape_rewards(self, groups): ...
    @hookimpl(wrapper=True)
    def rlvr_verify(self, batch):
        return (yield)

class Explodes(Shaper):
    def __init__(self, config, *, name):
        raise OSError("no GPU")
"""
PLUGINS = {"made": "Made", "shaper": "Shaper", "explodes": "Explodes"}


def resolve(path: Path, *overrides: str) -> ResolvedStack:
    return resolve_stack(load_stack(path, overrides))


def refused(path: Path, *overrides: str) -> RlvrError:
    with pytest.raises(RlvrError) as caught:
        resolve(path, *overrides)
    return caught.value


def test_defaults_are_added_for_what_nobody_answers(write_stack: WriteStack) -> None:
    resolved = resolve(write_stack(advantage=["dr-grpo"], monitors=[{"dead-groups": {}}]))

    added = [plugin.name for plugin in resolved.plugins if plugin.is_default]
    assert added == ["uniform", "fixed", "ppo-clip", "verifier-health", "non-finite"]
    assert [plugin.family for plugin in resolved.plugins] == sorted(
        (plugin.family for plugin in resolved.plugins), key=list(Family).index
    )
    assert list(resolved.verifiers) == ["exact-match"]
    assert resolved.plugins[0].origin.endswith("stack.yaml:9:3 (verifiers[0])")
    assert resolved.plugins[0].plugin.name == "exact-match"
    assert resolved.control is None


def test_a_default_steps_aside_for_a_name_that_is_taken(write_stack: WriteStack) -> None:
    resolved = resolve(write_stack(samplers=[{"fixed": {"plugin": "uniform"}}]))

    assert ("fixed-default", "fixed") in [
        (plugin.name, plugin.ref.plugin) for plugin in resolved.plugins
    ]


def test_the_resolved_stack_loads_back_to_an_equal_one(
    write_stack: WriteStack, make_distribution: MakeDistribution, tmp_path: Path
) -> None:
    make_distribution(MANY, plugins=PLUGINS)
    entries = [
        "exact-match",
        {"made": {"weight": 0.5, "timeout_s": 3}},
        {"no": {"plugin": "made"}},
        "shaper",
    ]
    resolved = resolve(write_stack(entries, control="control-random"), "control.rate=0.25")
    again = tmp_path / "resolved.yaml"
    again.write_text(resolved_yaml(resolved))

    second = resolve(again)

    assert second.stack == resolved.stack
    assert resolved_yaml(second) == again.read_text()
    assert second.stack.verifiers[2].config == {"tolerance": 1e-6, "names": {"no": 1, "1e-6": 2}}
    assert not any(plugin.is_default for plugin in second.plugins)


def test_the_plan_shows_call_order_defaults_and_wrappers(
    write_stack: WriteStack, make_distribution: MakeDistribution
) -> None:
    make_distribution(MANY, plugins=PLUGINS)
    path = write_stack(["made", "shaper", "exact-match"])

    plan = {stage.hook: stage for stage in plan_by_stage(resolve(path))}
    with_control = {
        stage.hook: stage for stage in plan_by_stage(resolve(path, "control=control-random"))
    }

    assert [
        (one.name, one.blame, one.is_default, one.is_wrapper) for one in plan["rlvr_verify"].plugins
    ] == [
        ("made", "rlvr-plugin-made 0.1.0", False, False),
        ("shaper", "rlvr-plugin-made 0.1.0", False, True),
        ("exact-match", plan["rlvr_policy_loss"].plugins[0].blame, False, False),
    ]
    assert plan["rlvr_policy_loss"].plugins[0][:2] == ("ppo-clip", "ppo-clip")
    assert plan["rlvr_policy_loss"].plugins[0].is_default
    assert [stage.number for stage in plan.values()][:5] == ["0", "1", "", "2", "3"]
    assert [one.name for one in plan["rlvr_shape_rewards"].plugins] == ["shaper"]
    assert [one.name for one in with_control["rlvr_shape_rewards"].plugins] == ["control-random"]


def test_settings_of_all_plugins_are_checked_at_once_with_their_lines(
    write_stack: WriteStack, make_distribution: MakeDistribution
) -> None:
    make_distribution(MANY, plugins=PLUGINS)
    path = write_stack(
        [{"made": {"tolerence": 1}}, {"exact-match": {"wieght": 1}}],
        advantage=[{"grpo": {"ddof": 2}}],
    )

    error = refused(path, "verifiers.made.tolerance=-1")

    assert error.code == "RLVR-S102"
    assert isinstance(error, StackError)
    text = error.message
    assert "stack.yaml:11:5: verifiers[0].tolerence: unknown key; did you mean 'tolerance'?" in text
    assert "verifiers[1].wieght: unknown key; did you mean 'weight'? Allowed: " in text
    assert "advantage[0].ddof: must be" in text
    assert "command line: verifiers.made.tolerance: must be greater than 0, got -1" in text


def test_two_answers_to_one_question_are_refused_naming_both(write_stack: WriteStack) -> None:
    error = refused(write_stack(advantage=["grpo", "dr-grpo"]))

    assert error.code == "RLVR-S104"
    assert "'dr-grpo' and 'grpo' (" in error.message
    assert "both answer rlvr_estimate_advantages" in error.message


@pytest.mark.parametrize(
    ("verifiers", "overrides", "said"),
    [
        (["shaper"], [], "none of these judges completions"),
        (["shaper"], ["control=exact-match"], "none of these judges completions"),
        (["made", "shaper"], ["evaluate.also=[shaper]"], "'shaper' does not judge completions"),
        (["made"], ["control=exact-match"], "'exact-match' is no control"),
        (["made"], ["verifiers.made.concurrency=4"], "waits for a service, and 'made' does not"),
    ],
)
def test_plugins_in_a_role_they_cannot_play_are_refused(
    write_stack: WriteStack,
    make_distribution: MakeDistribution,
    verifiers: list[str],
    overrides: list[str],
    said: str,
) -> None:
    make_distribution(MANY, plugins=PLUGINS)

    error = refused(write_stack(verifiers), *overrides)

    assert error.code == "RLVR-S104"
    assert said in error.message


def test_a_constructor_that_raises_is_the_plugins_fault(
    write_stack: WriteStack, make_distribution: MakeDistribution
) -> None:
    make_distribution(MANY, plugins=PLUGINS)

    error = refused(write_stack(["made", "explodes"]))

    assert isinstance(error, PluginError)
    assert (error.code, error.cause) == ("RLVR-P105", "OSError: no GPU")


def test_one_plugin_can_be_resolved_without_a_stack() -> None:
    ref = resolve_plugin(Family.VERIFIERS, "Exact_Match", {"fold_case": True}, "mine")

    assert (ref.plugin, ref.name, ref.distribution) == ("exact-match", "mine", "rlvr-core")
    assert ref.build().name == "mine"
    with pytest.raises(StackError, match="did you mean 'fold_case'"):
        resolve_plugin(Family.VERIFIERS, "exact-match", {"fold_cas": True})
    with pytest.raises(StackError, match="no plugin named 'absent'"):
        resolve_plugin(Family.VERIFIERS, "absent", {})


def test_the_schema_knows_the_settings_of_installed_plugins(
    make_distribution: MakeDistribution,
) -> None:
    make_distribution(MANY, plugins=PLUGINS)
    make_distribution("1/0", "rlvr-plugin-broken", plugins={"broken": "Made"})
    schema, errors = stack_schema(PluginIndex.scan())
    validator = jsonschema.Draft202012Validator(schema)
    good = {
        "model": "m",
        "data": {"train": {"path": "x"}},
        "verifiers": [
            "exact-match",
            {"made": {"tolerance": 1, "weight": 2}},
            {"made": None},
            {"mine": {"plugin": "made"}},
            {"broken": {"anything": 1}},
        ],
        "train": {"steps": 1, "learning_rate": 0.1},
        "control": {"control-random": {"rate": 0.5}},
    }

    validator.check_schema(schema)
    validator.validate(good)

    assert [error.code for error in errors if "broken" in error.message] == ["RLVR-P102"]
    for bad in (
        {**good, "verifiers": [{"made": {"tolerance": -1}}]},
        {**good, "verifiers": [{"exact-match": {"wieght": 1}}]},
        {**good, "modl": 1},
    ):
        assert not validator.is_valid(bad), json.dumps(bad)
