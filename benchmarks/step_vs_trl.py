"""One training step against TRL's `GRPOTrainer`: ``python benchmarks/step_vs_trl.py CASE WORK``.

In an environment of its own (``make bench-trl`` makes it, and runs all of them). One process, step
by step: after each of TRL's steps come one of ours and one of a plain loop (the library's
``generate``, forward, backward, AdamW, nothing else), with the same prompts, each from weights of
its own. A step of TRL's is compared with the mean of its neighbours of ours, so that what else the
machine does meanwhile falls on all three.

All three learn from the completions and rewards that TRL's step made: the largest difference of
their weights is printed beside how far the weights moved, and shows that they compute the same
update. Ours samples and verifies completions of its own first, in the same time.

``same`` does the same model calls as TRL, which the ledger shows: every prompt once for each of its
completions, all completions of full length. ``less`` leaves out what the result does not need: the
prompt is computed once a group, finished completions leave the batch, nothing is computed that no
plugin asked for. Every group is alive in both: the rewards always differ.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from cases import Case, make_case, our_runtime, rows_width
from datasets import Dataset
from measuring import Clock, Times
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from rlvr_core.api import FinishReason, Rollout, Segment
from rlvr_core.rollout.transformers_engine import TransformersEngine
from rlvr_core.train.session import StepSession
from rlvr_core.train.step import collect, learn

WARM_UP = 1


class Ledger:
    """Counts a model's forward calls by gradient, rows and positions."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.calls: Counter[tuple[bool, int, int]] = Counter()
        model.get_decoder().register_forward_pre_hook(self._count, with_kwargs=True)

    def _count(self, _module: object, args: tuple, kwargs: dict) -> None:
        ids = kwargs.get("input_ids", args[0] if args else None)
        self.calls[(torch.is_grad_enabled(), *ids.shape)] += 1

    def positions(self) -> dict[str, int]:
        """Return the positions computed with and without gradient."""
        total = Counter()
        for (gradient, rows, width), count in self.calls.items():
            total["gradient" if gradient else "no gradient"] += rows * width * count
        return dict(total)


class Batch:
    """What a step of TRL's sampled: completions of each prompt, and their rewards."""

    def __init__(self, questions: list[str], output: dict, rewards: list[float]) -> None:
        self.questions = questions
        masks = output["completion_mask"].bool()
        self.completions = [
            ids[mask].tolist() for ids, mask in zip(output["completion_ids"], masks, strict=True)
        ]
        self.rewards = rewards


class OurSide:
    """Our step, from a real stack, with TRL's completions put in the place of its own."""

    def __init__(self, case: Case, folder: Path, work: str, stack: Iterator) -> None:
        self.case = case
        self.runtime = stack.enter_context(
            our_runtime(case, folder, layout="rows" if work == "same" else "shared")
        )
        model = self.runtime.policy.model
        if work == "same":
            self.runtime.engine = TransformersEngine(
                model,
                stop_ids=[],
                max_rows=case.prompts_per_step * case.group_size,
                autocast=self.runtime.accelerator.autocast,
                share_prompts=False,
            )
        self.model = model
        self.ledger = Ledger(model)
        self.rows = {row.id: row for row in self.runtime.train_rows}
        self.steps = 0
        self.collect_times = Times()
        self.learn_times = Times()

    def step(self, batch: Batch, times: Times) -> None:
        self.steps += 1
        size = self.case.group_size
        ids = batch.questions[::size]
        self.runtime.train_rows = [self.rows[row_id] for row_id in ids]
        session = StepSession(
            runtime=self.runtime, step=self.steps, weights_version=self.steps - 1, prompts_drawn=0
        )
        clock = Clock()
        collected = collect(self.runtime, session)
        collecting = clock.read()
        order = {row_id: number for number, row_id in enumerate(ids)}
        groups = sorted(collected.groups, key=lambda group: order[group.row.id])
        for number, group in enumerate(groups):
            of_group = slice(number * size, (number + 1) * size)
            group.rollouts[:] = [
                _rollout(group.row, index, token_ids, reward)
                for index, (token_ids, reward) in enumerate(
                    zip(batch.completions[of_group], batch.rewards[of_group], strict=True)
                )
            ]
        clock = Clock()
        learn(self.runtime, session, groups)
        self.runtime.engine.push(self.model, self.steps)
        learning = clock.read()
        self.collect_times.add(collecting)
        self.learn_times.add(learning)
        times.add(collecting, learning)


def _rollout(row, index: int, token_ids: list[int], reward: float) -> Rollout:
    return Rollout(
        row=row,
        sample_index=index,
        completion="",
        segments=[Segment(token_ids=token_ids, logps=[0.0] * len(token_ids))],
        finish_reason=FinishReason.LENGTH,
        weights_version=0,
        sampled_under=row.prompt,
        trained_under=row.prompt,
        reward=reward,
    )


class PlainSide:
    """The plain loop: what a step costs with the library's calls and nothing around them."""

    def __init__(self, case: Case, tokenizer, learning_rate: float) -> None:
        self.case = case
        self.tokenizer = tokenizer
        self.model = AutoModelForCausalLM.from_pretrained(case.model, dtype=torch.float32).eval()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=learning_rate, weight_decay=0.0
        )
        self.prompts = {row["id"]: _prompt_ids(tokenizer, row["prompt"]) for row in case.rows}
        self.autocast = lambda: torch.autocast(
            "cpu", torch.bfloat16, enabled=case.precision == "bf16"
        )

    def step(self, batch: Batch, times: Times) -> None:
        case, size = self.case, self.case.group_size
        clock = Clock()
        prompts = [self.prompts[row_id] for row_id in batch.questions]
        width = max(map(len, prompts))
        pad = self.tokenizer.pad_token_id
        ids = torch.tensor([[pad] * (width - len(p)) + p for p in prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        with torch.no_grad(), self.autocast():
            self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=case.completion_tokens,
                min_new_tokens=None if case.stops else case.completion_tokens,
                do_sample=True,
                top_k=0,
                pad_token_id=pad,
            )
        longest = max(map(len, batch.completions))
        completions = torch.tensor([c + [pad] * (longest - len(c)) for c in batch.completions])
        present = torch.tensor([[1] * len(c) + [0] * (longest - len(c)) for c in batch.completions])
        rewards = torch.tensor(batch.rewards).view(-1, size)
        advantages = (rewards - rewards.mean(1, keepdim=True)) / (
            rewards.std(1, keepdim=True) + 1e-4
        )
        ids = torch.cat([ids, completions], 1)
        mask = torch.cat([mask, present], 1)
        for part in torch.arange(len(ids)).split(case.micro_batch_rows):
            with self.autocast():
                logits = (
                    self.model(
                        input_ids=ids[part], attention_mask=mask[part], logits_to_keep=longest + 1
                    )
                    .logits[:, :-1]
                    .float()
                )
            logps = logits.log_softmax(-1).gather(-1, completions[part, :, None])[..., 0]
            ratio = torch.exp(logps - logps.detach())
            loss = -(advantages.view(-1)[part, None] * ratio * present[part]).sum()
            (loss / present.sum()).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        times.add(clock.read())


def _prompt_ids(tokenizer, prompt) -> list[int]:
    if isinstance(prompt, str):
        return tokenizer(prompt)["input_ids"]
    return tokenizer.apply_chat_template(
        prompt, add_generation_prompt=True, tokenize=True, return_dict=True
    )["input_ids"]


class Paired(TrainerCallback):
    """Runs one step of each other side after each of TRL's, and keeps the times."""

    def __init__(self, trainer_rewards: list[float]) -> None:
        self.rewards = trainer_rewards
        self.batches: list[Batch] = []
        self.times = {"TRL": Times()}
        self.sides: dict[str, OurSide | PlainSide] = {}

    def add(self, name: str, side: OurSide | PlainSide) -> None:
        self.sides[name] = side
        self.times[name] = Times()

    def on_step_begin(self, args, state, control, **_) -> None:
        self.clock = Clock()

    def on_step_end(self, args, state, control, **_) -> None:
        self.times["TRL"].add(self.clock.read())
        for name in sorted(self.sides, reverse=state.global_step % 2 == 0):
            self.sides[name].step(self.batches[-1], self.times[name])
        latest = ", ".join(f"{name} {times.wall[-1]:.3f} s" for name, times in self.times.items())
        print(f"step {state.global_step}: {latest}", flush=True)


def make_trainer(case: Case, folder: Path, tokenizer, steps: int):
    rewards: list[float] = []

    def distinct_characters(completions, **_) -> list[float]:
        texts = [c if isinstance(c, str) else c[0]["content"] for c in completions]
        rewards[:] = [len(set(text)) / max(len(text), 1) for text in texts]
        return list(rewards)

    pair = Paired(rewards)
    fixed = None if case.stops else {"min_new_tokens": case.completion_tokens}
    batch = case.prompts_per_step * case.group_size
    config = GRPOConfig(
        output_dir=str(folder / "trl"),
        use_cpu=True,
        bf16=case.precision == "bf16",
        gradient_checkpointing=False,
        report_to="none",
        save_strategy="no",
        logging_steps=10_000,
        disable_tqdm=True,
        per_device_train_batch_size=case.micro_batch_rows,
        gradient_accumulation_steps=batch // case.micro_batch_rows,
        num_generations=case.group_size,
        max_completion_length=case.completion_tokens,
        generation_kwargs=fixed,
        learning_rate=2e-5 if case.name == "demo" else 1e-4,
        lr_scheduler_type="constant",
        max_steps=steps,
        beta=0.0,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        loss_type="dapo",
        scale_rewards="group",
        mask_truncated_completions=False,
        shuffle_dataset=False,
        model_init_kwargs={"dtype": "float32", "device_map": None},
        seed=0,
    )
    trainer = GRPOTrainer(
        model=str(case.model),
        args=config,
        train_dataset=Dataset.from_list(
            [{"prompt": row["prompt"], "row_id": row["id"]} for row in case.rows]
        ),
        reward_funcs=distinct_characters,
        processing_class=tokenizer,
        callbacks=[pair],
    )
    generate = trainer._generate_and_score_completions

    def recorded(inputs):
        output = generate(inputs)
        pair.batches.append(Batch([row["row_id"] for row in inputs], output, list(rewards)))
        return output

    trainer._generate_and_score_completions = recorded
    return trainer, pair


def movement(first, second) -> torch.Tensor:
    """Return the difference of two models' weights, flat."""
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return torch.cat([(a.detach() - b.detach()).flatten() for a, b in pairs])


def ratios(trl: list[float], other: list[float]) -> list[float]:
    """Return TRL's times over those of another side; each of ours stands between two of TRL's."""
    trl, other = trl[WARM_UP:], other[WARM_UP:]
    return [(trl[n] + trl[n + 1]) / 2 / other[n] for n in range(len(trl) - 1)]


def report(case: Case, work: str, pair: Paired, trl_ledger: Ledger, trainer) -> None:
    """Print times, ratios, the ledgers, and how far the weights moved and differ."""
    print(f"\n{case.name}, {work}: {torch.get_num_threads()} threads, {case.precision}")
    for name, times in pair.times.items():
        wall, cpu = times.wall[WARM_UP:], times.cpu[WARM_UP:]
        print(
            f"  {name:5} median {statistics.median(wall):8.3f} s, least {min(wall):8.3f} s; "
            f"CPU median {statistics.median(cpu):8.3f} s"
        )
    ours = pair.sides["ours"]
    parts = [statistics.median(t.wall[WARM_UP:]) for t in (ours.collect_times, ours.learn_times)]
    print(f"  ours  sampling and verifying {parts[0]:.3f} s, learning {parts[1]:.3f} s")
    for name in pair.sides:
        for clock in ("wall", "cpu"):
            found = ratios(getattr(pair.times["TRL"], clock), getattr(pair.times[name], clock))
            low, middle, high = statistics.quantiles(found, n=4)
            print(
                f"  TRL / {name:5} ({clock:4}) median {middle:.2f}, "
                f"quartiles {low:.2f} to {high:.2f}"
            )
    for name, ledger in (("TRL", trl_ledger), ("ours", ours.ledger)):
        print(f"  {name:5} positions {ledger.positions()}")
        if work == "same":
            for (gradient, rows, width), count in sorted(ledger.calls.items()):
                kind = "gradient   " if gradient else "no gradient"
                print(f"        {kind} {rows:4} x {width:4}: {count}")
    fresh = AutoModelForCausalLM.from_pretrained(case.model, dtype=torch.float32)
    moved = movement(trainer.model, fresh)
    print(f"  TRL moved weights by up to {moved.abs().max():.2e}")
    for name, side in pair.sides.items():
        apart = movement(trainer.model, side.model)
        print(
            f"  TRL and {name} differ by up to {apart.abs().max():.2e}, "
            f"{apart.norm() / moved.norm():.2%} of the movement (L2)"
        )


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def main() -> int:
    from contextlib import ExitStack

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("case", choices=["demo", "S", "M"])
    parser.add_argument("work", choices=["same", "less"])
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-plain", action="store_true", help="leave the plain loop out")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        case = make_case(arguments.case, folder, stops=arguments.work == "less")
        tokenizer = AutoTokenizer.from_pretrained(case.model)
        trainer, pair = make_trainer(case, folder, tokenizer, arguments.steps)
        trl_ledger = Ledger(trainer.model)
        ours = OurSide(case, folder / "ours", arguments.work, stack)
        pair.add("ours", ours)
        if not arguments.no_plain:
            pair.add("plain", PlainSide(case, tokenizer, trainer.args.learning_rate))
        print(f"{case.name}: rows of up to {rows_width(case)} positions")
        trainer.train()
        report(case, arguments.work, pair, trl_ledger, trainer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
