from __future__ import annotations

from importlib.resources import as_file, files

import pytest

from rlvr_core.config.load import load_stack

RECIPES = sorted(
    entry.name
    for entry in files("rlvr_core").joinpath("recipes").iterdir()
    if entry.name.endswith(".yaml")
)


def test_the_demo_and_the_dead_start_are_there() -> None:
    assert {"smollm2-arithmetic.yaml", "smollm2-dead-start.yaml"} <= set(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_is_a_valid_stack(name: str) -> None:
    with as_file(files("rlvr_core").joinpath("recipes", name)) as path:
        stack = load_stack(path).stack
    assert stack.model == "smollm2"
    assert stack.evaluate.also == ["flexible"]
    assert stack.verifiers[0].name == "math-sympy"
