"""The small parts of supervised verification, on their own."""

from __future__ import annotations

import os

import pytest

from rlvr_core.api import EnvironmentFault, PluginError
from rlvr_core.verification.blame import investigate
from rlvr_core.verification.board import (
    Board,
    Progress,
    board_descriptor,
    pack_record,
    unpack_records,
)
from rlvr_core.verification.plan import Instance
from rlvr_core.verification.rows import RawRow
from rlvr_core.verification.tasks import Chunk, Task, TaskQueue
from rlvr_core.verification.wire import pack_error, unpack_error


def task(number: int, verifier: str = "a") -> Task:
    return Task(verifier, RawRow(id=str(number), completion="", ground_truth={}))


def ids(tasks: list[Task]) -> list[str]:
    return [each.row.id for each in tasks]


def test_verifiers_take_turns_and_keep_their_order():
    queue = TaskQueue()
    for number in range(4):
        queue.add(task(number, "a"))
    queue.add(task(9, "b"))
    assert [ids(queue.take(2)) for _ in range(3)] == [["0", "1"], ["9"], ["2", "3"]]
    assert len(queue) == 0


def test_what_is_put_back_comes_first_and_loners_travel_alone():
    queue = TaskQueue()
    tasks = [task(number) for number in range(5)]
    queue.add(tasks[4])
    tasks[1].is_alone = True
    queue.put_back(tasks[:4])
    assert [ids(queue.take(10)) for _ in range(3)] == [["0"], ["1"], ["2", "3", "4"]]


@pytest.fixture
def chunk():
    instance = Instance.__new__(Instance)
    return Chunk(7, 0, instance, [task(number) for number in range(4)], 0.0)


def test_the_announced_row_is_the_suspect_and_finished_rows_are_kept(chunk):
    records = pack_record(0, b"zero") + pack_record(1, b"one")
    found = investigate(chunk, Progress(7, 2, 0.0), records, was_at_work=True)
    assert [(each.row.id, data) for each, data in found.finished] == [("0", b"zero"), ("1", b"one")]
    assert found.suspect is chunk.tasks[2]
    assert ids(found.bystanders) == ["3"]


def test_without_an_announcement_everybody_goes_alone(chunk):
    found = investigate(chunk, Progress(7, None, 0.0), b"", was_at_work=True)
    assert found.suspect is None
    assert all(each.is_alone for each in found.bystanders)


def test_a_chunk_that_waited_behind_another_is_not_under_suspicion(chunk):
    found = investigate(chunk, Progress(6, 3, 0.0), pack_record(0, b"of 6"), was_at_work=False)
    assert ids(found.bystanders) == ["0", "1", "2", "3"]
    assert not found.finished
    assert not any(each.is_alone for each in found.bystanders)


def test_both_sides_of_a_board_see_the_same():
    descriptor = board_descriptor()
    ours, theirs = Board(descriptor, 2, 3), Board(descriptor, 2, 3)
    os.close(descriptor)
    lane = theirs.lanes[1]
    lane.clear()
    lane.mark(5, None, 1.5)
    assert ours.lanes[1].progress() == Progress(5, None, 1.5)
    lane.mark(5, 0, 2.5)
    lane.store(pack_record(0, b"{}"))
    assert ours.lanes[1].progress() == Progress(5, 0, 2.5)
    assert list(unpack_records(ours.lanes[1].records())) == [(0, b"{}")]
    assert ours.lanes[0].progress() == Progress(0, None, 0.0)
    lane.store(b"x" * 100_000)
    assert list(unpack_records(ours.lanes[1].records())) == [(0, b"{}")], "no room, not stored"
    lane.clear()
    assert ours.lanes[1].records() == b""


@pytest.mark.parametrize("kind", [PluginError, EnvironmentFault])
def test_errors_keep_their_kind_and_text_on_the_way(kind):
    error = kind("RLVR-P105", "it broke", origin="here", cause="that", fix="this", report="there")
    back = unpack_error(pack_error(error))
    assert type(back) is kind
    assert str(back) == str(error)
