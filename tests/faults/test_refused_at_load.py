"""What could never work is refused when the stack is loaded, before a model is."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from rlvr_core.api.errors import PluginError, StackError
from rlvr_core.api.plugin import Family
from rlvr_core.builtin import control_random, estimators, exact_match, ppo_clip
from rlvr_core.config import models
from rlvr_core.monitors import dead_groups, non_finite, verifier_health
from rlvr_core.plugins.checks import check_class
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.train.prepare import prepare

from .conftest import write_faulty_stack

SECTIONS = {
    "rollout": models.RolloutSection,
    "train": models.TrainSection,
    "evaluate": models.EvaluateSection,
    "verification": models.VerificationSection,
}
PLUGINS = {
    ("verifiers", "exact-match"): exact_match.ExactMatch.Config,
    ("advantage", "grpo"): estimators.GrpoConfig,
    ("advantage", "ppo-clip"): ppo_clip.PpoClipConfig,
    ("monitors", "dead-groups"): dead_groups.DeadGroupsConfig,
    ("monitors", "non-finite"): non_finite.NonFiniteConfig,
    ("monitors", "verifier-health"): verifier_health.VerifierHealthConfig,
    ("control", "control-random"): control_random.ControlRandomConfig,
}
REF = PluginRef(
    family=Family.VERIFIERS,
    plugin="made-up",
    name="made-up",
    value="made_up:MadeUp",
    distribution="rlvr-plugin-made-up",
    version="0.1.0",
    config={},
)
NOT_FINITE = (".nan", ".inf", "-.inf")


def kinds(annotation: Any) -> Iterator[Any]:
    """Yield the plain types of an annotation, and `Literal` for a choice of words."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from kinds(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for one in get_args(annotation):
            yield from kinds(one)
    else:
        yield origin if origin is Literal else annotation


def keys_of_kind(model: type[BaseModel], *wanted: Any) -> list[str]:
    return [
        name
        for name, field in model.model_fields.items()
        if any(kind in wanted for kind in kinds(field.annotation))
    ]


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """Return a function that loads a stack with YAML put in places, and returns what is wrong."""
    folder = tmp_path_factory.mktemp("refused")

    def load(**sections: Any) -> str:
        path = write_faulty_stack(folder / "stack", "no-model", **sections)
        # Quoted by JSON, plain in YAML.
        text = path.read_text()
        for value in (*NOT_FINITE, "null"):
            text = text.replace(f'"<{value}>"', value)
        path.write_text(text)
        with pytest.raises(StackError) as refused:
            prepare(path)
        return str(refused.value)

    return load


def plugin_section(family: str, plugin: str, settings: dict[str, Any]) -> dict[str, Any]:
    entry = {plugin: settings}
    if family == "control":
        return {"control": entry}
    return {family: ["odd", entry] if family == "verifiers" else [entry]}


@pytest.mark.parametrize("section", SECTIONS)
def test_no_number_of_a_section_may_be_nan_or_infinite(problems, section):
    keys = keys_of_kind(SECTIONS[section], int, float)
    assert keys

    for value in NOT_FINITE:
        said = problems(**{section: dict.fromkeys(keys, f"<{value}>")})
        missed = [key for key in keys if f"{section}.{key}: must be" not in said]
        assert missed == [], value


@pytest.mark.parametrize(("family", "plugin"), PLUGINS, ids=[name for _, name in PLUGINS])
def test_no_number_of_a_plugin_may_be_nan_or_infinite(problems, family, plugin):
    keys = keys_of_kind(PLUGINS[family, plugin], int, float)

    for value in NOT_FINITE if keys else ():
        said = problems(**plugin_section(family, plugin, dict.fromkeys(keys, f"<{value}>")))
        missed = [key for key in keys if f".{key}: must be" not in said]
        assert missed == [], value


def test_the_numbers_of_a_plugin_with_lax_settings_may_not_be_nan_either(problems):
    for value in NOT_FINITE:
        said = problems(
            monitors=[{"odd-settings": {"share": f"<{value}>", "steps": [1.0, f"<{value}>"]}}]
        )

        assert "monitors[0].share: must be a finite number" in said
        assert "monitors[0].steps[1]: must be a finite number" in said


def test_the_weight_of_a_reward_may_not_be_nan_infinite_or_text(problems):
    for value in NOT_FINITE:
        said = problems(verifiers=["odd", {"exact-match": {"weight": f"<{value}>"}}])
        assert "weight: must be a finite number" in said
    assert "weight: must be a number" in problems(verifiers=[{"odd": {"weight": "1.0"}}])


@pytest.mark.parametrize("section", ["rollout", "train", "verification"])
def test_unknown_words_of_a_section_are_refused_with_the_known_ones(problems, section):
    keys = keys_of_kind(SECTIONS[section], Literal)
    assert keys

    said = problems(**{section: dict.fromkeys(keys, "sequence-ish")})

    assert [key for key in keys if f"{section}.{key}: must be" not in said] == []


@pytest.mark.parametrize(
    ("family", "plugin", "key"),
    [
        ("advantage", "grpo", "scale"),
        ("advantage", "grpo", "ddof"),
        ("advantage", "ppo-clip", "aggregation"),
        ("advantage", "ppo-clip", "kl_estimator"),
        ("verifiers", "exact-match", "extract"),
    ],
)
def test_unknown_words_of_a_plugin_are_refused_with_the_known_ones(problems, family, plugin, key):
    said = problems(**plugin_section(family, plugin, {key: "sequence-ish"}))

    assert f".{key}: must be" in said
    assert " or " in said


REFUSED = {
    "temperature 0": ({"rollout": {"temperature": 0}}, "rollout.temperature: must be at least"),
    "temperature -1": ({"rollout": {"temperature": -1}}, "rollout.temperature: must be at least"),
    "a group of one": ({"rollout": {"group_size": 1}}, "rollout.group_size: must be at least 2"),
    "no prompts": ({"rollout": {"prompts_per_step": 0}}, "rollout.prompts_per_step: must be at"),
    "no tokens": ({"rollout": {"max_completion_tokens": 0}}, "max_completion_tokens: must be at"),
    "no steps": ({"train": {"steps": 0}}, "train.steps: must be at least 1"),
    "true for a number": ({"train": {"steps": True}}, "train.steps: must be a whole number"),
    "text for a number": ({"train": {"steps": "2"}}, "train.steps: must be a whole number"),
    "-1 for no clipping": ({"train": {"max_grad_norm": -1}}, "max_grad_norm: must be greater than"),
    "a negative rate": ({"train": {"learning_rate": -1e-6}}, "learning_rate: must be greater than"),
    "a cut distribution": ({"rollout": {"top_p": 0.8}}, "rollout.top_p: unknown key"),
    "the best tokens": ({"rollout": {"top_k": 50}}, "rollout.top_k: unknown key"),
    "a least probability": ({"rollout": {"min_p": 0.1}}, "rollout.min_p: unknown key"),
    "adapters": ({"train": {"lora_rank": 8}}, "train.lora_rank: unknown key"),
    "a negative clip range": (
        {"advantage": [{"ppo-clip": {"clip_low": -0.2, "clip_high": -0.2}}]},
        "clip_low: must be greater than 0",
    ),
    "a clip range of all": ({"advantage": [{"ppo-clip": {"clip_low": 1}}]}, "must be less than 1"),
    "a penalty without a gradient": (
        {"advantage": [{"ppo-clip": {"kl_coefficient": 0.1, "kl_estimator": "k1"}}]},
        "k1 as a loss has an expected gradient of 0",
    ),
    "a setting that is not there": (
        {"advantage": [{"grpo": {"scale_rewards": True}}]},
        "advantage[0].scale_rewards: unknown key",
    ),
    "no reward at all": ({"verifiers": [{"odd": {"weight": 0}}]}, "every verifier has weight 0"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_a_stack_that_cannot_work_is_refused(problems, fault):
    sections, says = REFUSED[fault]

    assert says in problems(**sections)


def test_null_switches_clipping_off(tmp_path):
    path = write_faulty_stack(tmp_path / "stack", "no-model", train={"max_grad_norm": None})

    assert prepare(path).resolved.stack.train.max_grad_norm is None


@pytest.mark.parametrize(
    "found",
    [partial(exact_match.ExactMatch), exact_match.ExactMatch(), len, "text"],
    ids=["partial", "instance", "function", "text"],
)
def test_what_is_no_class_is_no_plugin_and_says_so(found):
    with pytest.raises(PluginError, match="is not a plugin class") as refused:
        check_class(REF, found)

    assert refused.value.code == "RLVR-P104"
    assert "must name a class that inherits" in str(refused.value)


def test_a_ground_truth_may_not_claim_the_word_that_routes_a_row():
    from rlvr_core.api import RowVerifier, Strict

    class Claims(RowVerifier):
        api_version = "1.0"

        class GroundTruth(Strict):
            type: str

        def verify_row(self, row):
            return self.judge(1.0)

    with pytest.raises(PluginError, match="its GroundTruth declares 'type'"):
        check_class(REF, Claims)


@pytest.mark.parametrize("word", ["completions", "completion", "reward", "advantage", "step", "a"])
def test_a_key_of_a_row_that_core_does_not_know_is_refused_with_its_place(tmp_path, row, word):
    from rlvr_core.api.errors import DataError

    path = write_faulty_stack(tmp_path / "stack", "no-model", [row(0), row(1, **{word: 1})])

    with pytest.raises(DataError) as refused:
        prepare(path)

    assert f"train.jsonl:2: unknown key '{word}'" in str(refused.value)
    assert "metadata" in str(refused.value)


def test_metadata_may_use_every_word(tmp_path, row):
    words = ("completions", "completion", "prompt", "id", "verifier", "type", "reward", "step")
    path = write_faulty_stack(
        tmp_path / "stack", "no-model", [row(0, metadata=dict.fromkeys(words, 1))]
    )

    [loaded] = prepare(path).splits["train"]

    assert json.loads(json.dumps(dict(loaded.metadata))) == dict.fromkeys(words, 1)
