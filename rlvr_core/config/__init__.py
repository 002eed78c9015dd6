"""The stack file: its YAML, its models, its messages."""
