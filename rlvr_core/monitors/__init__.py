"""The monitors that ship with core."""
