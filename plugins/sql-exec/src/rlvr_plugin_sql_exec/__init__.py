"""SQL in an answer, run on SQLite and judged by its rows."""

from rlvr_plugin_sql_exec.verifier import SqlExec

__all__ = ["SqlExec"]
