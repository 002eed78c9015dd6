"""What was sampled and judged before a run broke off is used again, and not asked for twice."""

from collections import Counter

import pyarrow.parquet as parquet
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from stacks import read_lines

from rlvr_core.api.rollouts import FinishReason
from rlvr_core.api.verdicts import FailureCategory, Stage, Status, Verdict
from rlvr_core.records.layout import complete_checkpoints
from rlvr_core.rollout.engine import Sample, SampleRequest
from rlvr_core.rollout.transformers_engine import TransformersEngine
from rlvr_core.train import checkpoint
from rlvr_core.train.check_resume import TIMES
from rlvr_core.train.fingerprint import weights_fingerprint
from rlvr_core.train.prepare import prepare
from rlvr_core.train.recording import (
    Conditions,
    Judged,
    Recording,
    Sampled,
    read_recording,
    sample_key,
    write_recording,
    write_rows,
)
from rlvr_core.train.run import train

DRAWS_A_STEP = 4 * (4 + 2)
"""4 prompts, 4 rollouts that are kept, 2 that are thrown away."""


@pytest.fixture
def whimsical(write_stack, tmp_path):
    """A stack whose verdicts are random, whose sampler throws samples away, with a wrapper."""

    def write(name="stack", settings=(), **sections):
        witness = {"log": str(tmp_path / "asked"), **dict(settings)}
        train_section = {"steps": 6, "checkpoint_every": 2, **sections.pop("train", {})}
        return write_stack(
            name,
            verifiers=[{"resume-witness": witness}],
            judged_by={"type": "resume-witness", "answer": "a"},
            samplers=["resume-picky"],
            monitors=["resume-discount"],
            verification={"max_error_rate": 1.0},
            train={"learning_rate": 1e-2, **train_section},
            **sections,
        )

    return write


def asked(tmp_path):
    """Return how often the verifier was asked about each row."""
    return Counter((tmp_path / "asked").read_text().splitlines())


def reasons(run, kind):
    return [e["reason"] for e in read_lines(run / "events.jsonl") if e["kind"] == kind]


def without_times(records):
    return [{key: value for key, value in r.items() if key not in TIMES} for r in records]


def no_sampling(monkeypatch):
    sample = TransformersEngine.sample

    def refuse(engine, requests, on_finished):
        # Whether the model can be sampled from at all is looked at before every run.
        assert {request.key[0] for request in requests} == {"probe"}, "something was sampled"
        sample(engine, requests, on_finished)

    monkeypatch.setattr(TransformersEngine, "sample", refuse)


def test_a_resumed_run_samples_and_judges_nothing_that_is_on_record(
    whimsical, break_off, tmp_path, monkeypatch
):
    run = tmp_path / "run"
    stack = whimsical()
    break_off(prepare(stack), run, "step 6: learning")
    before = asked(tmp_path)
    no_sampling(monkeypatch)

    train(prepare(stack), run, resume=True)

    assert set(before.values()) == {1}
    assert asked(tmp_path) == before
    assert len(before) == 6 * DRAWS_A_STEP
    every = f"{DRAWS_A_STEP} of {DRAWS_A_STEP}"
    said = f"{every} samples and {every} verdicts are those that were recorded before"
    assert reasons(run, "replayed") == [f"step 5: {said}", f"step 6: {said}"]
    lost, made = (
        parquet.read_table(folder / "rollouts/000005.parquet").to_pylist()
        for folder in (run / "discarded/001", run)
    )
    assert lost == made
    [lost] = without_times(read_lines(run / "discarded/001/metrics.jsonl"))
    assert lost == without_times(read_lines(run / "metrics.jsonl"))[4]
    assert lost["updates"] == 1, "nothing was learnt"


def test_a_run_that_breaks_off_twice_still_has_its_first_record(
    whimsical, break_off, tmp_path, monkeypatch
):
    run = tmp_path / "run"
    stack = whimsical()
    break_off(prepare(stack), run, "step 6: learning")
    before = asked(tmp_path)
    no_sampling(monkeypatch)

    break_off(prepare(stack), run, "step 5: sampling", resume=True)
    break_off(prepare(stack), run, "step 6: sampling", resume=True)
    train(prepare(stack), run, resume=True)

    assert asked(tmp_path) == before


def test_a_verdict_that_was_an_error_is_asked_for_again(whimsical, break_off, tmp_path):
    run, down = tmp_path / "run", tmp_path / "down"
    stack = whimsical(settings={"down": str(down)})
    down.touch()
    break_off(prepare(stack), run, "step 2: learning")
    down.unlink()

    train(prepare(stack), run, resume=True)

    assert read_lines(run / "discarded/001/metrics.jsonl")[0]["errors"] == 16
    assert [record["errors"] for record in read_lines(run / "metrics.jsonl")] == [0] * 6
    [first, *_] = reasons(run, "replayed")
    assert f"{DRAWS_A_STEP} of {DRAWS_A_STEP} samples and 0 of {DRAWS_A_STEP} verdicts" in first


def test_samples_of_other_weights_are_not_used(whimsical, break_off, tmp_path):
    run = tmp_path / "run"
    stack = whimsical()
    break_off(prepare(stack), run, "step 6: learning")

    train(prepare(stack, ["train.learning_rate=0.02"]), run, resume=True, allow_changes=True)

    fifth, *sixth = reasons(run, "replayed")
    assert fifth.startswith("step 5: 24 of 24 samples and 24 of 24 verdicts")
    # A completion that comes out the same, of the same draw, need not be judged again.
    assert all(reason.startswith("step 6: 0 of 24 samples and ") for reason in sixth)
    assert reasons(run, "sampled-anew") == ["step 6: its recording was made with other weights"]
    assert read_lines(run / "metrics.jsonl")[-1]["learning_rate"] == 0.02


def test_verdicts_of_a_changed_verifier_are_not_used(whimsical, break_off, tmp_path, monkeypatch):
    run = tmp_path / "run"
    break_off(prepare(whimsical()), run, "step 6: learning")
    before = asked(tmp_path)

    changed = prepare(whimsical(settings={"down": "/nowhere"}))
    break_off(changed, run, "step 5: learning", resume=True, allow_changes=True)

    assert reasons(run, "judged-anew") == ["step 5: its recording was made with other verifiers"]
    [replayed] = reasons(run, "replayed")
    assert replayed.startswith("step 5: 24 of 24 samples and 0 of 24 verdicts")
    again = asked(tmp_path) - before
    assert len(again) == DRAWS_A_STEP
    assert all(row.startswith("step 5/") for row in again)


def test_a_recording_that_cannot_be_read_is_made_anew(write_stack, break_off, tmp_path):
    stack = write_stack(train={"steps": 4, "checkpoint_every": 2})
    train(prepare(stack), tmp_path / "unbroken")
    run = tmp_path / "run"
    break_off(prepare(stack), run, "step 4: learning")
    (run / "recorded/000003.parquet").write_bytes(b"PAR1 and then nothing that makes sense PAR1")
    torn = run / "recorded/000004.parquet"
    torn.write_bytes(torn.read_bytes()[:-100])

    train(prepare(stack), run, resume=True)

    assert reasons(run, "sampled-anew") == [
        f"step {step}: its recording cannot be read" for step in (3, 4)
    ]
    first, second = (read_lines(path / "metrics.jsonl") for path in (tmp_path / "unbroken", run))
    assert without_times(first) == without_times(second)


def test_recordings_go_with_the_checkpoints_before_them(write_stack, tmp_path):
    stack = write_stack(train={"steps": 6, "checkpoint_every": 2, "keep_checkpoints": 2})

    train(prepare(stack), tmp_path / "run")
    train(prepare(stack, ["train.checkpoint_every=0"]), tmp_path / "one")

    kept = sorted(path.stem for path in (tmp_path / "run/recorded").iterdir())
    assert [path.name for path in complete_checkpoints(tmp_path / "run")] == ["000004", "000006"]
    assert kept == ["000005", "000006"]
    # The beginning is one of the two places that this run can be continued from.
    assert len(list((tmp_path / "one/recorded").iterdir())) == 6


def test_an_evaluation_that_breaks_off_is_made_again(write_stack, break_off, tmp_path):
    stack = write_stack(
        evaluate={"splits": ["dev"], "every": 2}, train={"steps": 3, "checkpoint_every": 1}
    )
    train(prepare(stack), tmp_path / "unbroken")
    run = tmp_path / "run"
    break_off(prepare(stack), run, "evaluating dev", times=2)

    train(prepare(stack), run, resume=True)

    first, second = (
        [{**record, "duration_s": None} for record in read_lines(path / "evals.jsonl")]
        for path in (tmp_path / "unbroken", run)
    )
    assert [record["step"] for record in second] == [0, 2, 3]
    assert first == second


def test_nothing_depends_on_the_state_of_global_generators(write_stack, break_off, tmp_path):
    import random

    import numpy

    stack = write_stack(train={"steps": 3, "checkpoint_every": 1})
    weights = []
    for seed in (1, 2):
        run = tmp_path / str(seed)
        random.seed(seed), numpy.random.seed(seed), torch.manual_seed(seed)
        break_off(prepare(stack), run, "step 3: learning")
        before = random.getstate(), torch.get_rng_state()
        train(prepare(stack), run, resume=True)
        assert random.getstate() == before[0]
        assert torch.equal(torch.get_rng_state(), before[1])
        weights.append(load_file(checkpoint.newest(run) / "model.safetensors"))

    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


numbers = st.floats(allow_nan=False)
texts = st.text()
samples = st.builds(
    lambda logps, entropy, reason: Sample(
        token_ids=list(range(len(logps))),
        logps=logps,
        entropy=entropy,
        finish_reason=reason,
        weights_version=2,
    ),
    st.lists(numbers, min_size=1, max_size=4),
    st.none() | numbers,
    st.sampled_from(FinishReason),
)
verdicts = st.builds(
    Verdict,
    status=st.just(Status.FAILED),
    score=st.floats(0, 1),
    failure=st.just(FailureCategory.MALFORMED),
    stage=st.none() | st.sampled_from(Stage),
    diagnostics=st.dictionaries(texts, st.none() | texts | st.floats(-1e9, 1e9)),
    verifier=st.just("one"),
    version=st.just("0.1+abc"),
    latency_s=st.sampled_from([0.0, 0.125, 1e-6]),
)


@given(st.lists(samples, max_size=3), st.lists(verdicts, max_size=3), texts)
def test_a_recording_comes_back_exactly(tmp_path_factory, found, judged, key):
    path = tmp_path_factory.mktemp("recording") / "000001.parquet"
    recording = Recording(
        conditions=Conditions(weights=key, weights_version=2, engine="e", verifiers="v"),
        samples=[
            Sampled(name=f"{n}", key=key.encode("utf-8", "replace"), sample=one)
            for n, one in enumerate(found)
        ],
        verdicts=[Judged(name=f"{n}", key=b"\x00", verdict=v) for n, v in enumerate(judged)],
    )

    write_recording(recording, path)

    assert read_recording(path) == recording


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recording of some samples and verdicts, as a file."""
    path = tmp_path_factory.mktemp("recorded") / "000001.parquet"
    sample = Sample(
        token_ids=[5, 6],
        logps=[-0.5, -0.25],
        entropy=0.5,
        finish_reason=FinishReason.STOP,
        weights_version=2,
    )
    verdict = Verdict(
        status=Status.FAILED, score=0.25, failure=FailureCategory.MALFORMED, verifier="one"
    )
    recording = Recording(
        conditions=Conditions(weights="w", weights_version=2, engine="e", verifiers="v"),
        samples=[Sampled(name=f"{n}", key=bytes([n]) * 32, sample=sample) for n in range(30)],
        verdicts=[Judged(name=f"{n}", key=bytes([n]) * 32, verdict=verdict) for n in range(30)],
    )
    write_recording(recording, path)
    assert read_recording(path) == recording
    return path


def test_no_bit_of_a_recording_can_change_what_it_says(recorded, tmp_path):
    whole, data = read_recording(recorded), recorded.read_bytes()
    changed = tmp_path / "changed.parquet"

    for number, place in enumerate(range(0, len(data), 3)):
        content = bytearray(data)
        content[place] ^= 1 << number % 8
        changed.write_bytes(content)
        found = read_recording(changed)
        # What it was recorded under is not in a page; other conditions use nothing of it.
        if found is not None and found.conditions == whole.conditions:
            assert found == whole, place


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("token_ids", None),
        ("token_ids", []),
        ("token_ids", [5, -6]),
        ("token_ids", [5, None]),
        ("token_ids", [5, 6, 7]),
        ("logps", None),
        ("logps", [-0.5]),
        ("logps", [-0.5, float("nan")]),
        ("logps", [-0.5, None]),
        ("finish_reason", "boo"),
        ("weights_version", 3),
        ("weights_version", None),
        ("key", None),
        ("name", None),
        ("verdict", b"\x80\x04 garbage"),
        ("verdict", b"[]"),
        ("verdict", b"[" * 100_000),
        ("verdict", b'["passed",1e999,null,null,{},0]'),
        ("verdict", b'["passed",null,null,null,{},0]'),
    ],
)
def test_a_recording_of_what_no_engine_or_verifier_says_cannot_be_read(
    recorded, tmp_path, column, value
):
    rows = parquet.read_table(recorded).to_pylist()
    conditions = read_recording(recorded).conditions
    write_rows(rows, conditions, tmp_path / "same.parquet")
    assert read_recording(tmp_path / "same.parquet") == read_recording(recorded)
    rows[-1 if column == "verdict" else 0][column] = value
    write_rows(rows, conditions, tmp_path / "other.parquet")

    assert read_recording(tmp_path / "other.parquet") is None


def test_a_draw_is_known_by_everything_that_was_asked():
    request = SampleRequest(
        prompt_ids=(1, 2), max_tokens=3, temperature=1.0, key=(0, "rollout", 1, "row", 0)
    )
    others = [
        {"prompt_ids": (1, 2, 3)},
        {"max_tokens": 4},
        {"temperature": 0.9},
        {"key": (0, "rollout", 1, "row", 1)},
        {"key": (0, "rollout", 2, "row", 0)},
    ]
    fields = {name: getattr(request, name) for name in request.__slots__}

    keys = {sample_key(SampleRequest(**{**fields, **other})) for other in others}

    assert len(keys) == len(others)
    assert sample_key(request) not in keys


def test_a_fingerprint_tells_weights_apart_that_differ_in_one_bit():
    torch.manual_seed(0)
    for shape in ((4, 6), (3, 5), (7,), ()):
        model = torch.nn.Module()
        model.weight = torch.nn.Parameter(torch.randn(shape))
        before = weights_fingerprint(model)
        assert before == weights_fingerprint(model)
        bits = model.weight.detach().view(-1).view(torch.int32)
        bits[-1] ^= 1
        assert weights_fingerprint(model) != before
        bits[-1] ^= 1
        assert weights_fingerprint(model) == before


def test_a_fingerprint_tells_rows_names_and_shapes_apart():
    torch.manual_seed(0)
    weight = torch.randn(4, 6)

    def of(name, value):
        model = torch.nn.Module()
        model.register_parameter(name, torch.nn.Parameter(value.clone()))
        return weights_fingerprint(model)

    made = [of("a", weight), of("b", weight), of("a", weight.flip(0)), of("a", weight.view(6, 4))]
    made += [of("a", weight.double()), of("a", weight.to(torch.bfloat16))]

    assert len(set(made)) == len(made)
