"""Measuring a policy on a held-out split."""
