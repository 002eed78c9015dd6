"""Where a model comes from: a folder, a hub id, or the embedded default."""
