"""A module that speaks when it is imported."""

from fixture_bad_verifiers import Good

print("hello")  # noqa: T201 - the fault


class R04(Good):
    """Good, but for its module."""
