"""The shape of a stack file: strict models, ranges, and the rules that span two keys.

Phase one of two. A plugin's own settings stay an opaque mapping here; `rlvr_core.plugins.resolve`
checks them against the plugin's `Config` once the named plugins are loaded.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from rlvr_core.api.plugin import RESERVED_CONFIG_KEYS, Family

OnTimeout = Literal["mask", "fail"]
"""What a row is that passes its deadline twice: masked, or failed with the lowest score."""
Positive = Annotated[int, Field(ge=1)]


def _without_nul(path: str) -> str:
    if "\0" in path:
        raise ValueError("must not hold a NUL character")
    return path


PathText = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]

PLUGIN_LISTS = frozenset(family.value for family in Family)
"""The sections that are lists of plugins."""


class Section(BaseModel):
    """Base of every section: unknown keys are errors, instances immutable, no NaN or infinity.

    Strict: ``true`` is no number, and a number in quotes is none either.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class DataSource(Section):
    """Where one split comes from."""

    path: PathText
    """JSON lines or parquet file, relative to the stack file; or ``hf:<data set>[:<split>]``."""
    limit: Positive | None = None
    """Use only the first rows."""


class DataSection(Section):
    """The four tiers of data."""

    train: DataSource
    """What is trained on."""
    dev: DataSource | None = None
    """Early stop, choosing a checkpoint."""
    transfer: DataSource | None = None
    """Other ranges, other wording."""
    gate: DataSource | None = None
    """Opened once per release candidate; never read while training."""


class VllmSection(Section):
    """Settings of the vLLM engine, read when `rollout.engine` is vllm."""

    kv_cache_gib: float = Field(default=4.0, gt=0, le=1024)
    """Memory in GiB for what vLLM remembers of prompts and running completions."""
    eager: bool = False
    """Run vLLM's model without compilation and CUDA graphs: starts sooner, samples slower."""


class RolloutSection(Section):
    """How completions are sampled."""

    engine: Literal["transformers", "vllm"] = "transformers"
    """What samples: the policy itself (transformers), or a copy of it that vLLM runs (vllm)."""
    vllm: VllmSection = VllmSection()
    """The vLLM engine."""
    group_size: int = Field(default=8, ge=2)
    """Rollouts a prompt."""
    prompts_per_step: Positive = 8
    """Over all processes."""
    max_completion_tokens: Positive = 512
    """A completion that reaches it is cut off there."""
    max_prompt_tokens: Positive | None = None
    """Longer prompts are refused before step 0. Default: what the model has room for."""
    temperature: float = Field(default=1.0, ge=0.01, le=10)
    """Of sampling, and of the log-probabilities in the loss."""
    prompt_format: Literal["auto", "chat", "text"] = "auto"
    """How a prompt given as a string is sent: as a user turn (chat), as is (text), or as a user
    turn when the model has a chat template (auto)."""
    max_rows: Positive = 256
    """Completions decoded side by side at most; bounds memory."""
    max_rounds: Positive = 4
    """Rounds of new prompts a step may take until enough groups are kept."""


class TrainSection(Section):
    """How groups become weights."""

    steps: Positive
    """Steps of the run: each samples, verifies and learns once."""
    learning_rate: float = Field(gt=0, lt=1)
    """Of AdamW, after the warm-up."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps over which the learning rate rises linearly from 0; a shorter run ends on the way."""
    weight_decay: float = Field(default=0.0, ge=0, lt=1)
    """Of AdamW."""
    max_grad_norm: float | None = Field(default=1.0, gt=0)
    """Gradients with a larger norm are scaled down to it; null: they are not."""
    mini_batches: Positive = 1
    """Optimiser updates that one pass over a batch of rollouts is split into."""
    passes: Positive = 1
    """Passes over each batch of rollouts."""
    micro_batch_tokens: Positive = 4096
    """Tokens, prompts included, in one forward pass at most; a larger group goes alone."""
    precision: Literal["auto", "bf16", "fp32"] = "auto"
    """bf16: weights in float32, matrix products under autocast; auto: bf16 on devices that compute
    in it, fp32 on others."""
    layout: Literal["auto", "shared", "rows"] = "auto"
    """shared: the prompt of a group is computed once; rows: once for each rollout; auto: shared
    when a check on the loaded model shows equal results."""
    checkpoint_every: int = Field(default=0, ge=0)
    """Steps between checkpoints; 0: only the last step."""
    keep_checkpoints: Positive = 2
    """Complete checkpoints that are kept."""
    process_timeout_s: float = Field(default=1800.0, ge=1)
    """Of several processes: how long one waits for the others before the run ends and says which
    did not come."""


class EvaluateSection(Section):
    """How the held-out splits are measured."""

    splits: list[Literal["dev", "transfer"]] = ["dev"]
    """What is measured."""
    every: int = Field(default=0, ge=0)
    """Steps between evaluations; 0: before the first step and after the last."""
    samples_per_prompt: Positive = 1
    """Completions sampled for each row."""
    temperature: float | None = Field(default=None, ge=0.01, le=10)
    """Default: the rollout temperature."""
    also: list[str] = []
    """Verifiers of the stack that grade evaluation completions in addition; never rewarded."""


class VerificationSection(Section):
    """The budget of supervised verification."""

    workers: int | None = Field(default=None, ge=1, le=1024)
    """Worker processes for `cpu` verifiers. Default: (cores - 1) / local processes, at least 1."""
    timeout_s: float = Field(default=10.0, gt=0, le=3600)
    """Deadline of a row, from the moment work on it starts."""
    on_timeout: OnTimeout = "mask"
    """What a row is that passes its deadline twice, the second time alone."""
    max_error_rate: float = Field(default=0.05, ge=0, le=1)
    """The run stops when more than this share of the last `error_window` verdicts are errors."""
    error_window: Positive = 256
    """Number of last verdicts of a verifier that its share of errors is taken over."""


class PluginEntry(Section):
    """One line of a plugin list: ``name``, or ``name: {config}``."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Instance name, unique in the stack."""
    plugin: str
    """Registered name of the plugin; the instance name unless the entry says otherwise."""
    timeout_s: float | None = Field(default=None, gt=0, le=3600)
    """Verifiers: deadline of a row. Default: `verification.timeout_s`."""
    on_timeout: OnTimeout | None = None
    """Verifiers: default `verification.on_timeout`."""
    concurrency: Positive | None = None
    """Verifiers that wait for a service: rows judged at once. Default: 32."""
    weight: float = Field(default=1.0, ge=-1e6, le=1e6)
    """Verifiers: the reward of a row is this times the score."""
    config: dict[str, Any] = {}
    """The plugin's own settings: every other key of the entry."""

    @model_validator(mode="before")
    @classmethod
    def _from_yaml(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value, "plugin": value}
        if not isinstance(value, dict):
            raise ValueError("must be a plugin name, or one name with its settings")
        if len(value) != 1:
            if {"name", "plugin", "config"} <= value.keys():
                return value
            if value and next(iter(value.values())) is None:
                raise ValueError("settings must be indented below the plugin name they belong to")
            raise ValueError("must hold exactly one plugin name; start a new '- ' for the next")
        name, settings = next(iter(value.items()))
        settings = {} if settings is None else settings
        if not isinstance(settings, dict):
            raise ValueError(f"the settings of {name!r} must be a mapping")
        core = {key: settings[key] for key in RESERVED_CONFIG_KEYS & settings.keys()}
        config = {key: item for key, item in settings.items() if key not in RESERVED_CONFIG_KEYS}
        return {"name": name, "plugin": name, **core, "config": config}


class Stack(Section):
    """A whole stack file."""

    schema_version: Literal[1] = 1
    """Version of this file format."""
    model: PathText
    """A folder (relative to the stack file), a hub id, or the built-in name ``smollm2``."""
    seed: int = Field(default=0, ge=0, lt=2**63)
    """Every random draw of the run is keyed by it."""
    data: DataSection
    """Where the rows come from."""
    rollout: RolloutSection = RolloutSection()
    """How completions are sampled."""
    verifiers: list[PluginEntry] = Field(min_length=1)
    """What decides rewards; rows are routed by name."""
    samplers: list[PluginEntry] = []
    """What chooses prompts, and how they are sampled."""
    advantage: list[PluginEntry] = []
    """What turns rewards into a loss."""
    monitors: list[PluginEntry] = []
    """What watches the run."""
    train: TrainSection
    """How groups become weights."""
    evaluate: EvaluateSection = EvaluateSection()
    """How held-out splits are measured."""
    verification: VerificationSection = VerificationSection()
    """The budget of supervised verification."""
    control: PluginEntry | None = None
    """Control arm: this plugin's rewards replace those of stage 5."""

    def entries(self) -> list[tuple[Family, int, PluginEntry]]:
        """Return every plugin entry as (family, position, entry), in call order."""
        return [
            (family, position, entry)
            for family in Family
            for position, entry in enumerate(getattr(self, family.value))
        ]

    @field_validator(*sorted(PLUGIN_LISTS), mode="before")
    @classmethod
    def _empty_list(cls, value: Any) -> Any:
        return [] if value is None else value
