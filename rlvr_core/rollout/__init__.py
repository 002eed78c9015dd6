"""Sampling completions from a policy."""
