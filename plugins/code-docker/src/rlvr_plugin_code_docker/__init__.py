"""Python code in an answer, judged by tests that run in a sandbox."""

from rlvr_plugin_code_docker.verifier import CodeDocker

__all__ = ["CodeDocker"]
