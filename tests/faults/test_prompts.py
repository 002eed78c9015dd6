"""Prompts that a model cannot take are found before step 0; what is odd about them is said."""

from __future__ import annotations

import pytest

from rlvr_core.api.errors import DataError, PluginError, RunEndedError, StackError
from rlvr_core.rollout.tokens import PromptTokenizer
from rlvr_core.train.build import load_model
from rlvr_core.train.prepare import prepare
from rlvr_core.train.prompt_check import check_prompts

CHAT = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}"
    "{{ raise_exception('no system turns') }}{% endif %}{{ m.content }}{% endfor %}"
)
TEXT = {"rollout": {"prompt_format": "text"}}


@pytest.fixture(scope="module")
def tiny(tiny_model):
    return load_model(tiny_model)


@pytest.fixture
def check(write_stack, tiny):
    """Return a function that looks at the prompts of a stack, and returns the remarks."""

    def look(rows, model=None, **sections):
        prepared = prepare(write_stack(train_rows=rows, **sections))
        loaded = tiny if model is None else load_model(model)
        stack = prepared.resolved.stack
        tokenizer = PromptTokenizer(loaded.tokenizer, stack.rollout.prompt_format)
        config = loaded.model.config
        return [*prepared.remarks(), *check_prompts(prepared, tokenizer, config)]

    return look


def refused(check, *arguments, **sections):
    with pytest.raises(DataError) as raised:
        check(*arguments, **sections)
    assert raised.value.code == "RLVR-D102"
    return raised.value.cause


def test_ordinary_prompts_have_nothing_odd(check, row):
    assert check([row(number) for number in range(4)]) == []
    assert (
        check(
            [
                row(number, prompt=[*CHAT[:1], {"role": "user", "content": f"{number}"}])
                for number in range(4)
            ]
        )
        == []
    )


def test_a_prompt_longer_than_the_model_is_found_with_its_length(check, row):
    said = refused(check, [row(0), row(1, prompt="x" * 600)])

    assert said.startswith("train: 1 prompts are too long, they may take 506 tokens")
    assert "train-1 (619)" in said
    assert "train-0" not in said


def test_the_length_that_is_checked_is_the_length_that_is_sampled_under(check, row, tiny):
    """Template, turns and BOS included: at the limit a prompt passes, one token more does not."""
    messages = [*CHAT[:1], {"role": "user", "content": "a prompt with a system turn"}]
    rows = [row(number, prompt=messages) for number in range(1)]
    length = len(
        tiny.tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    )
    limit = {"rollout": {"prompts_per_step": 1, "max_prompt_tokens": length}}

    assert check(rows, **limit) == []
    limit["rollout"]["max_prompt_tokens"] = length - 1
    assert f"train-0 ({length})" in refused(check, rows, **limit)


def test_a_prompt_without_text_is_found(check, row):
    rows = [row(0, prompt="<bos>"), row(1, prompt="<eos>"), row(2, prompt="a")]

    said = refused(check, rows, **TEXT)

    assert said == "train: 2 prompts have no tokens but special ones: train-0, train-1"


@pytest.mark.parametrize("prompt", ["", " \n\t", [], [{"role": "user", "content": " "}]])
def test_an_empty_prompt_is_found_in_the_data(check, row, prompt):
    assert "empty" in refused(check, [row(0), row(1, prompt=prompt)])


def test_messages_need_a_chat_template(check, row, changed_model):
    said = refused(check, [row(0, prompt=CHAT)], changed_model(template=""))

    assert "a list of messages needs a chat template, and the model has none: train-0" in said


def test_the_chat_format_needs_a_chat_template(check, row, changed_model):
    with pytest.raises(StackError, match="prompt_format: 'chat' needs a chat template") as raised:
        check([row(0)], changed_model(template=""), rollout={"prompt_format": "chat"})

    assert raised.value.code == "RLVR-S102"


@pytest.mark.parametrize(
    ("template", "says"),
    [(NO_SYSTEM, "TemplateError: no system turns"), ("{% for", "TemplateSyntaxError")],
)
def test_a_chat_template_that_refuses_prompts_is_named_with_the_rows(
    check, row, changed_model, template, says
):
    said = refused(check, [row(0, prompt=CHAT)], changed_model(template=template))

    assert f"the model's chat template raises {says}" in said
    assert "train-0" in said


def test_tokens_that_the_model_does_not_know_are_found(check, row, changed_model):
    def cut(tensors):
        for name, tensor in tensors.items():
            if tensor.shape[0] > 200:
                tensors[name] = tensor[:100].clone()

    model = changed_model(config={"vocab_size": 100}, weights=cut)

    said = refused(check, [row(0, prompt="AB"), row(1, prompt="A B")], model, **TEXT)

    assert said == ("train: 1 prompts have tokens that the model, with 100, does not know: train-1")


def test_bos_twice_is_said(check, row):
    rows = [row(0, prompt="<bos><bos>a"), row(1, prompt="<bos>b"), row(2), row(3)]

    assert check(rows, **TEXT) == [
        "train: 1 prompts begin with the model's BOS token twice: train-0"
    ]


def test_text_that_went_through_the_template_before_is_said(check, row, tiny):
    templated = tiny.tokenizer.decode(PromptTokenizer(tiny.tokenizer).encode("hi"))

    [said] = check([row(0, prompt=templated), row(1), row(2), row(3)])

    assert said.startswith("train: 1 prompts hold the text of special tokens inside a chat turn")
    assert "set rollout.prompt_format: text" in said
    assert said.endswith("train-0")
    assert check([row(0, prompt=templated), row(1), row(2), row(3)], **TEXT) == []


def test_different_prompts_that_are_the_same_to_the_model_are_said(check, row, changed_model):
    model = changed_model(template="{{ bos_token }}go")

    [said] = check([row(number) for number in range(4)], model)

    assert said.startswith("train: 4 prompts differ in the data and are the same tokens")


def test_a_prompt_that_repeats_with_another_answer_is_no_such_thing(check, row):
    rows = [row(number, prompt="the same") for number in range(4)]

    assert check(rows) == []


def test_fewer_prompts_than_a_step_takes_is_said(check, row):
    assert check([row(0), row(1)]) == [
        "train has 2 prompts and a step takes 4: they repeat within it"
    ]


def test_remarks_are_events_of_the_run(run, row, changed_model):
    model = changed_model(config={"eos_token_id": None}, generation={"eos_token_id": None})
    path = model / "tokenizer_config.json"
    path.write_text(path.read_text().replace('"eos_token"', '"no_such_token"'))

    finished = run(model=model, train_rows=[row(0), row(1)], train={"steps": 1})

    assert finished.reasons()[:2] == [
        "train has 2 prompts and a step takes 4: they repeat within it",
        "the model names no token that ends a completion: all reach their limit",
    ]
    assert finished.metrics[0]["truncated_rate"] == 1
    ids = {line["row_id"] for line in finished.rollouts()}
    assert ids == {"train-0", "train-1"}


def test_remarks_stand_in_the_dry_run(write_stack, row):
    import io

    from rich.console import Console

    from rlvr_core.cli.plan import print_plan

    prepared = prepare(write_stack(train_rows=[row(0), row(1, prompt="<bos>x")]))
    shown = io.StringIO()

    print_plan(prepared, Console(file=shown, width=200), as_json=False)

    assert "Note: train has 2 prompts and a step takes 4" in shown.getvalue()
    assert "Note: train: 1 prompts hold the text of special tokens" in shown.getvalue()


def test_what_a_plugin_makes_of_a_prompt_must_fit_as_well(run):
    with pytest.raises(PluginError) as raised:
        run(samplers=[{"odd-wrap": {"times": 200}}])

    assert raised.value.code == "RLVR-P106"
    assert "takes 1033 tokens; it may take 506" in str(raised.value)


def test_a_plugin_that_breaks_inside_another_is_blamed_itself(run):
    with pytest.raises(PluginError) as raised:
        run(samplers=[{"odd-wrap": {"unprintable": True}}])

    assert "plugin 'odd-wrap': rlvr_wrap_prompt raised" in str(raised.value)
    assert "UnprintableError, whose message cannot be shown" in str(raised.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_that_gives_nan_ends_the_run_and_says_so(run, changed_model, value):
    model = changed_model(weights=lambda tensors: tensors[max(tensors)].fill_(value))

    with pytest.raises(RunEndedError) as raised:
        run(model=model)

    assert raised.value.code == "RLVR-T110"
    assert raised.value.exit_code == 4
    assert run.read().metrics == []


def test_row_ids_may_hold_any_text(run, row):
    ids = ["a/b", "ü\n\0x", "../../etc", 7, "x" * 500]

    finished = run(
        train_rows=[row(number, id=one) for number, one in enumerate(ids)],
        rollout={"prompts_per_step": 5},
        train={"steps": 1},
    )

    found = {line["row_id"] for line in finished.rollouts()}
    assert len(found) == 5
    assert {"a/b", "../../etc", "7", "x" * 500} <= found
    assert not list(finished.folder.parent.glob("**/etc*"))
