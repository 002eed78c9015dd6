"""Pure functions of the learning rule; no I/O."""
