"""Checks of a user's own stack and plugins on a tiny model: the test suite turned outward."""
