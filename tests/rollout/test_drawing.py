"""Drawing one token a row: the distribution it follows, and what it says of it."""

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from rlvr_core.rollout.drawing import BLOCK, draw_tokens  # noqa: E402

SIZES = [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 1000]
ALMOST_ONE = float(torch.nextafter(torch.tensor(1.0), torch.tensor(0.0)))


def logits(rows, size, seed=0, spread=4.0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, size, generator=generator) * spread


@pytest.mark.parametrize("size", SIZES)
def test_a_token_is_the_first_whose_cumulative_probability_exceeds_the_number(size):
    logits_RV = logits(64, size)
    uniform_R = torch.rand(64, generator=torch.Generator().manual_seed(1))

    drawn = draw_tokens(logits_RV, uniform_R)

    upto_RV = logits_RV.double().softmax(-1).cumsum(-1)
    for upto_V, uniform, token in zip(upto_RV, uniform_R, drawn.token_R, strict=True):
        below = float(upto_V[token - 1]) if token else 0.0
        assert below - 1e-6 <= float(uniform) <= float(upto_V[token]) + 1e-6


@pytest.mark.parametrize("size", SIZES)
def test_log_probability_and_entropy_are_those_of_the_distribution(size):
    logits_RV = logits(8, size)

    drawn = draw_tokens(logits_RV, torch.linspace(0, ALMOST_ONE, 8))

    logp_RV = logits_RV.double().log_softmax(-1)
    expected_R = logp_RV.gather(-1, drawn.token_R[:, None])[:, 0]
    torch.testing.assert_close(drawn.logp_R.double(), expected_R, atol=1e-5, rtol=0)
    entropy_R = -(logp_RV.exp() * logp_RV).sum(-1)
    torch.testing.assert_close(drawn.entropy_R.double(), entropy_R, atol=1e-4, rtol=0)


def test_frequencies_are_the_probabilities():
    probability_V = torch.tensor([0.5, 0.0, 0.25, 0.125, 0.125])
    uniform_R = torch.rand(20_000, generator=torch.Generator().manual_seed(2))

    drawn = draw_tokens(probability_V.log().expand(20_000, -1), uniform_R)

    share_V = torch.bincount(drawn.token_R, minlength=5) / 20_000
    torch.testing.assert_close(share_V, probability_V, atol=0.015, rtol=0)
    assert share_V[1] == 0


@settings(deadline=None, max_examples=200)
@given(
    size=st.sampled_from(SIZES),
    seed=st.integers(0, 10_000),
    spread=st.sampled_from([0.0, 1.0, 30.0, 1e4]),
    uniform=st.one_of(st.just(0.0), st.just(ALMOST_ONE), st.floats(0, ALMOST_ONE, width=32)),
)
def test_a_token_without_probability_is_never_drawn(size, seed, spread, uniform):
    logits_1V = logits(1, size, seed, spread)
    if size > 1:
        logits_1V[0, seed % size] = -torch.inf
        logits_1V[0, -1] = -torch.inf if seed % 2 else logits_1V[0, -1]
    if not torch.isfinite(logits_1V).any():
        return

    drawn = draw_tokens(logits_1V, torch.tensor([uniform]))

    assert 0 <= drawn.token_R.item() < size
    assert logits_1V[0, drawn.token_R].exp() > 0 or torch.isfinite(logits_1V[0, drawn.token_R])
    assert torch.isfinite(drawn.logp_R).all()
    assert torch.isfinite(drawn.entropy_R).all()
