"""The project of a new plugin, made from templates."""
