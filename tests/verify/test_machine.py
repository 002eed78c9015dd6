"""What this process may use of the machine."""

import pytest

from rlvr_core.verification.machine import local_processes


@pytest.mark.parametrize(
    ("local", "world", "count"),
    [("8", "16", 8), (None, "2", 2), ("", "2", 2), (None, None, 1), ("0", None, 1), ("x", "4", 1)],
)
def test_processes_of_other_machines_do_not_share_the_cores_of_this_one(
    monkeypatch, local, world, count
):
    for name, value in (("LOCAL_WORLD_SIZE", local), ("WORLD_SIZE", world)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert local_processes() == count
