"""Finding, loading, registering and calling plugins."""
