"""Supervised verification: worker processes, deadlines, blame."""
