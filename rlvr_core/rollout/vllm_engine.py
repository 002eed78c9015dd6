"""Sampling with vLLM, in the training process.

vLLM keeps a copy of the policy in the precision that training computes in. It is built from the
policy's config with made-up weights; the real ones are handed over in memory, at the start and
after each update, and every weight of vLLM's model must have been among them. What vLLM remembers
of prompts is forgotten with the old weights. At the start both models are asked for the same
log-probabilities, so that a model which vLLM computes otherwise is found before step 1.

Imported only where a stack asks for it: vLLM is no dependency of core.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

# vLLM reads these while it is imported. One process: weights are handed over as they are, and no
# other process is left behind. Nothing is sent anywhere; only errors are printed, and not among
# results.
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")

import torch
from transformers import PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion
from vllm import EngineArgs, LLMEngine, RequestOutput, SamplingParams
from vllm.config import set_current_vllm_config
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.model_loader.reload import (
    finalize_layerwise_reload,
    initialize_layerwise_reload,
)
from vllm.sampling_params import RequestOutputKind

from rlvr_core.api.errors import EnvironmentFault, exception_text, listed
from rlvr_core.api.rollouts import FinishReason
from rlvr_core.rl.keyed_random import digest
from rlvr_core.rollout.engine import Sample, SampleRequest

PROBE_TEMPERATURE = 0.7
"""Not 1, so that log-probabilities which leave the temperature out are noticed."""

PROBE_TOLERANCE = {"fp32": 0.01, "bf16": 0.2}
"""Largest mean difference of log-probabilities, in nats a token, that is put down to rounding."""

FINISH_REASONS = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}


class VllmEngine:
    """Implements `Engine` on a copy of the policy that vLLM runs.

    Args:
        model: The policy, on its device.
        stop_ids: Every id that ends a completion.
        max_rows: Completions decoded side by side.
        precision: That training computes in; vLLM's copy has it.
        kv_cache_bytes: Memory for the keys and values of prompts and completions.
        eager: Without compilation and CUDA graphs.

    Raises:
        EnvironmentFault: RLVR-E104, vLLM cannot run this model here.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        stop_ids: Sequence[int],
        max_rows: int,
        precision: Literal["bf16", "fp32"],
        kv_cache_bytes: int,
        eager: bool,
    ) -> None:
        # vLLM refuses ids that the model cannot produce; some tokenizers have such an end token.
        vocabulary = model.config.get_text_config().vocab_size
        self._stop_ids = [one for one in stop_ids if one < vocabulary]
        self._made = 0
        self._open: dict[str, int] = {}
        with tempfile.TemporaryDirectory() as folder, _blaming_vllm("it was started"):
            model.config.save_pretrained(folder)
            self._engine = LLMEngine.from_engine_args(
                EngineArgs(
                    model=folder,
                    load_format="dummy",
                    skip_tokenizer_init=True,
                    generation_config="vllm",
                    dtype={"bf16": "bfloat16", "fp32": "float32"}[precision],
                    logprobs_mode="processed_logprobs",
                    max_model_len=-1,
                    max_num_seqs=max_rows,
                    enforce_eager=eager,
                    kv_cache_memory_bytes=kv_cache_bytes,
                    # vLLM does not start when this share of the device is not free. Its cache has a
                    # size of its own, and training has taken its part of the device.
                    gpu_memory_utilization=0.01,
                    # On a CPU vLLM cannot sample with a seed where it computes a prompt in parts.
                    enable_chunked_prefill=model.device.type != "cpu",
                    # A weight must not change below a token that is under way.
                    async_scheduling=False,
                    disable_log_stats=True,
                )
            )
        try:
            self.push(model, 0)
            self._require_agreement(model, PROBE_TOLERANCE[precision])
        except BaseException:
            self.close()
            raise

    def push(self, model: PreTrainedModel, version: int) -> None:
        """Take over the weights that `model` has now; see `Engine.push`.

        Raises:
            EnvironmentFault: RLVR-E104.
        """
        weights = checkpoint_weights(model)
        with _blaming_vllm("it took over new weights"):
            self._forget_open_requests()
            [missing] = self._engine.collective_rpc(_replace_weights, args=(weights,))
            if missing:
                raise RuntimeError(f"the policy has no weights for {listed(missing)}")
            if not self._engine.reset_prefix_cache():
                raise RuntimeError("it still holds what it computed with the old ones")
        self._weights_version = version

    def sample(
        self,
        requests: Sequence[SampleRequest],
        on_finished: Callable[[int, Sample], None],
    ) -> None:
        """Sample every request; see `Engine.sample`.

        Entropies are not known. The seed of a request comes from its key, but vLLM's arithmetic
        depends on what is computed side by side, so equal keys give equal tokens nearly always.

        Raises:
            EnvironmentFault: RLVR-E104, vLLM failed, or a request is longer than its cache allows.
        """
        self._require_room(requests)
        with _blaming_vllm("it took on requests"):
            self._forget_open_requests()
            for index, request in enumerate(requests):
                self._made += 1
                name = str(self._made)
                self._open[name] = index
                prompt: Any = {"prompt_token_ids": list(request.prompt_ids)}
                self._engine.add_request(name, prompt, self._parameters(request))
        while self._open:
            with _blaming_vllm("it sampled"):
                if not self._engine.has_unfinished_requests():
                    raise RuntimeError(f"it lost {len(self._open)} requests")
                finished = [self._read(output) for output in self._engine.step() if output.finished]
            for index, sample in finished:
                on_finished(index, sample)

    def close(self) -> None:
        """End vLLM and free what it holds."""
        self._engine.engine_core.shutdown()

    @torch.no_grad()
    def _require_agreement(self, model: PreTrainedModel, tolerance: float) -> None:
        """Sample from made-up prompts, and refuse log-probabilities that are not the policy's."""
        vocabulary = model.config.get_text_config().vocab_size
        gaps: list[torch.Tensor] = []

        def compare(index: int, sample: Sample) -> None:
            prompt_ids = requests[index].prompt_ids
            ids = torch.tensor([[*prompt_ids, *sample.token_ids]], device=model.device)
            logits_TV = model(ids).logits[0, len(prompt_ids) - 1 : -1].float()
            logp_TV = (logits_TV / PROBE_TEMPERATURE).log_softmax(-1)
            logp_T = logp_TV.gather(-1, ids[0, len(prompt_ids) :, None])[:, 0]
            gaps.append((logp_T - logp_T.new_tensor(sample.logps)).abs())

        requests = [
            SampleRequest(
                prompt_ids=tuple((7 * place + number) % vocabulary for place in range(16)),
                max_tokens=16,
                temperature=PROBE_TEMPERATURE,
                key=("probe", number),
            )
            for number in range(4)
        ]
        self.sample(requests, compare)
        gap = torch.cat(gaps).mean().item()
        if not gap <= tolerance:  # NaN is no agreement either
            raise EnvironmentFault(
                "RLVR-E104",
                "vLLM computes other log-probabilities than the policy",
                cause=f"they differ by {gap:.3g} nats a token on average, and may by {tolerance}",
                fix="vLLM cannot sample from this model here: set rollout.engine: transformers",
            )

    def _parameters(self, request: SampleRequest) -> SamplingParams:
        return SamplingParams(
            temperature=request.temperature,
            seed=int.from_bytes(digest(*request.key)[:8], "big") >> 1,  # a signed integer is wanted
            max_tokens=request.max_tokens,
            stop_token_ids=self._stop_ids,
            ignore_eos=True,  # stop ids hold every one
            logprobs=0,  # the sampled token's alone
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    def _read(self, output: RequestOutput) -> tuple[int, Sample]:
        """Return the place of a finished request and its sample."""
        [completion] = output.outputs
        if completion.finish_reason not in FINISH_REASONS:
            raise RuntimeError(f"it gave a request up: {completion.finish_reason}")
        token_ids = list(completion.token_ids)
        return self._open.pop(output.request_id), Sample(
            token_ids=token_ids,
            logps=[
                found[token].logprob
                for token, found in zip(token_ids, completion.logprobs, strict=True)
            ],
            entropy=None,
            finish_reason=FINISH_REASONS[completion.finish_reason],
            weights_version=self._weights_version,
        )

    def _require_room(self, requests: Sequence[SampleRequest]) -> None:
        """Refuse what vLLM would silently end before its limit."""
        room = self._engine.model_config.max_model_len
        longest = max(len(one.prompt_ids) + one.max_tokens for one in requests) if requests else 0
        if longest > room:
            raise EnvironmentFault(
                "RLVR-E104",
                f"a prompt and its completion may take {longest} tokens, and vLLM has room for "
                f"{room}",
                cause="either the model has no more positions, or the cache cannot hold more",
                fix="raise rollout.vllm.kv_cache_gib, or lower rollout.max_completion_tokens",
            )

    def _forget_open_requests(self) -> None:
        """Give up what an earlier call left behind when it was interrupted."""
        if self._open:
            self._engine.abort_request(list(self._open))
            self._open.clear()


def checkpoint_weights(model: PreTrainedModel) -> Mapping[str, torch.Tensor]:
    """Return a model's weights under the names that a checkpoint has for them, each once."""
    unique: dict[int, tuple[str, torch.Tensor]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        unique.setdefault(id(tensor), (name, tensor.detach()))
    named: Mapping[str, torch.Tensor] = revert_weight_conversion(model, dict(unique.values()))
    return named


@torch.no_grad()
def _replace_weights(worker: Any, weights: Mapping[str, torch.Tensor]) -> list[str]:
    """Replace the weights of a worker's model; return the names of those that found no match."""
    model = worker.get_model()
    wanted = {name for name, _ in model.named_parameters()}
    with set_current_vllm_config(worker.vllm_config):
        initialize_layerwise_reload(model)
        loaded = model.load_weights(iter(weights.items()))
        finalize_layerwise_reload(model, worker.model_config)
        # On a CPU the output head computes with a packed copy of its weights. Where these are the
        # embedding's, vLLM packs the embedding's anew and leaves the head with the old ones.
        for module in model.modules():
            if isinstance(module, ParallelLMHead):
                module.quant_method.process_weights_after_loading(module)
    return sorted(wanted - loaded)


@contextmanager
def _blaming_vllm(when: str) -> Iterator[None]:
    """Turn whatever vLLM raises into an error of ours that says when it was."""
    try:
        yield
    except Exception as exc:
        raise EnvironmentFault(
            "RLVR-E104",
            f"vLLM failed when {when}",
            cause=exception_text(exc),
            fix="see what vLLM printed above; rollout.engine: transformers samples without it",
        ) from exc
