"""Linear layers on reordered weights: the same products, and nothing left behind."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from rlvr_core.rollout.packed_linears import LEAST_WEIGHTS, packed_linears  # noqa: E402
from rlvr_core.rollout.precision import computes_bf16  # noqa: E402

ROWS = 16


class Subclass(nn.Linear):
    """What a plugin may put in the place of a layer."""


@pytest.fixture
def layers():
    torch.manual_seed(0)
    hooked = nn.Linear(256, 256)
    hooked.forward = lambda inputs: inputs * 2
    return nn.ModuleDict(
        {
            "plain": nn.Linear(256, 300, bias=False),
            "biased": nn.Linear(256, 300),
            "small": nn.Linear(8, 8),
            "subclass": Subclass(256, 256),
            "hooked": hooked,
            "float64": nn.Linear(256, 256).double(),
        }
    )


def is_packed(layer):
    return layer.forward.__module__ == packed_linears.__module__


@pytest.mark.parametrize("name", ["plain", "biased"])
@pytest.mark.parametrize("shape", [(ROWS, 1, 256), (3, 1, 256), (ROWS, 40, 256), (256,)])
def test_products_are_those_of_the_layer(layers, name, shape):
    inputs = torch.randn(shape)
    with torch.inference_mode():
        expected = layers[name](inputs)
        with packed_linears(layers, ROWS):
            assert is_packed(layers[name])
            found = layers[name](inputs)

    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_products_under_autocast_have_its_precision(layers):
    if not computes_bf16(torch.device("cpu")):
        pytest.skip("this CPU has no bfloat16 kernels")
    inputs = torch.randn(ROWS, 1, 256)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        expected = layers["biased"](inputs)
        with packed_linears(layers, ROWS):
            assert is_packed(layers["biased"])
            found = layers["biased"](inputs)

    assert found.dtype is torch.bfloat16
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("name", ["small", "subclass", "hooked", "float64"])
def test_layers_that_it_would_not_speed_up_or_not_keep_are_left_alone(layers, name):
    assert layers["small"].weight.numel() < LEAST_WEIGHTS <= layers["plain"].weight.numel()
    with torch.inference_mode(), packed_linears(layers, ROWS):
        assert not is_packed(layers[name])


def test_layers_are_as_they_were_afterwards_whatever_happened(layers):
    with pytest.raises(KeyboardInterrupt), torch.inference_mode(), packed_linears(layers, ROWS):
        raise KeyboardInterrupt

    assert [name for name, layer in layers.items() if is_packed(layer)] == []
    assert layers["hooked"](torch.ones(1)).item() == 2


def test_new_weights_are_seen_by_the_next_block(layers):
    inputs = torch.randn(ROWS, 1, 256)
    found = []
    for factor in (1.0, 3.0):
        with torch.inference_mode(), packed_linears(layers, ROWS):
            found.append(layers["plain"](inputs))
        layers["plain"].weight.data *= 3 * factor

    torch.testing.assert_close(found[1], 3 * found[0], atol=1e-5, rtol=1e-5)
