"""Supervised verification: verdicts from worker processes, under deadlines that hold."""
