"""Units however they are written, and that two different ones disagree (policy U2)."""

from __future__ import annotations

import pytest
from rlvr_plugin_math_sympy.unit_products import product_of_units

SAME = [
    ("5 N·m", "5 m N"),
    (r"5\,\mathrm{N\cdot m}", "5"),
    (r"5 \text{ N}\cdot\text{m}", "5 N m"),
    ("5 J/(kg·K)", "5"),
    (r"5 \text{ J/(kg K)}", r"5 \text{ J} \text{ kg}^{-1} \text{ K}^{-1}"),
    (r"5\ \mathrm{kg \cdot m^{2}}", "5"),
    ("5 kg/m^3", r"5\,\mathrm{kg\,m^{-3}}"),
    ("5 kg/m3", "5 kg/m³"),
    ("5 m2", "5 m^2"),
    ("25 cm2", "25"),
    ("25 cm²", r"25 \text{ square centimeters}"),
    ("9.8 m/s/s", "9.8 m/s^2"),
    ("60 mph", "60 mi/h"),
    ("5 μm", r"5 \mu m"),
    (r"5\ \mu\text{m}", "5"),
    (r"50\ \text{k}\Omega", "50 kΩ"),
    (r"50\ \Omega", "50 ohms"),
    ("5 ms", "5"),
    ("12 MPa", "12"),
    (r"6 \times 10^{-34} \text{ J·s}", "6e-34"),
]
DIFFERENT = [
    ("5 N·m", "5 N"),
    ("5 N/m", "5 N·m"),
    ("5 kg/m^3", "5 kg/m^2"),
    ("12 mW", "12 MW"),
    ("5 kΩ", r"5\ \Omega"),
    ("5 ms", "5 s"),
    ("6 N·m", "5 N·m"),
]
NO_UNIT = [
    ("5m^2", "5"),
    ("5xy", "5"),
    (r"5\mu m", "5"),
    ("5", "5 N·m"),  # N and m may be numbers in a ground truth
    ("5 m n", "5 n"),
    (r"5 \text{ m}^2 + 1", "5"),
]


@pytest.mark.parametrize(("answer", "gold"), [*SAME, *((gold, answer) for answer, gold in SAME)])
def test_one_unit_is_itself_in_every_spelling(judge, answer, gold):
    assert judge(rf"\boxed{{{answer}}}", gold).score == 1.0


@pytest.mark.parametrize(
    ("answer", "gold"), [*DIFFERENT, *((gold, answer) for answer, gold in DIFFERENT)]
)
def test_two_units_disagree(judge, answer, gold):
    assert judge(rf"\boxed{{{answer}}}", gold).score == 0.0


def test_letters_after_a_space_are_a_unit_where_the_ground_truth_has_none(judge):
    assert judge(r"\boxed{5 N·m}", "5").score == 1.0


@pytest.mark.parametrize(("answer", "gold"), NO_UNIT)
def test_variables_are_no_unit(judge, answer, gold):
    assert judge(rf"\boxed{{{answer}}}", gold).score == 0.0


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("m N", "N.m"),
        ("J/(kg K)", "J/K/kg"),
        (r"\text{L}\,/\,\text{mol s}".replace(r"\,", " "), "L.s/mol"),
        ("m/m", None),
        ("N/", None),
        ("(N", None),
        ("N)", None),
        ("((N))", None),
        ("m^2^3", None),
        ("m" * 100, None),
        ("", None),
    ],
)
def test_a_product_has_one_name_or_is_none(text, name):
    assert product_of_units(text) == name
