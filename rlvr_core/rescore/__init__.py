"""Judging the stored rollouts of a run again, and telling what changed."""
