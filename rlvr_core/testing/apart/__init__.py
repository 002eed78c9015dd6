"""The part of the checks that runs in a process of its own, where a plugin can do no harm."""
