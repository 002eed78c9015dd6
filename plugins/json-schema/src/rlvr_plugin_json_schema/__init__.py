"""JSON in an answer, judged by a JSON Schema."""

from rlvr_plugin_json_schema.verifier import JsonSchema

__all__ = ["JsonSchema"]
