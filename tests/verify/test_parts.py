"""The small parts of supervised verification, on their own."""

from __future__ import annotations

import os

import pytest
from supervision import reference

from rlvr_core.api import EnvironmentFault, FailureCategory, PluginError, Resource, Status
from rlvr_core.verification.blame import investigate
from rlvr_core.verification.board import (
    Board,
    Progress,
    board_descriptor,
    pack_record,
    unpack_records,
)
from rlvr_core.verification.contract import ContractError, encode
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
    instance = Instance(
        ref=reference("Plain", "a"),
        version="0.1.0+abc",
        resource=Resource.CPU,
        environment=(),
        highest_score=1.0,
        lowest_score=0.0,
        timeout_s=10.0,
        fails_on_timeout=False,
        concurrency=1,
    )
    return Chunk(7, 0, instance, [task(number) for number in range(4)], 0.0)


def verdict(score: float) -> bytes:
    status, failure = (
        (Status.PASSED, None) if score == 1 else (Status.FAILED, FailureCategory.WRONG_ANSWER)
    )
    return encode(status, score, failure, None, {}, 0.5)


def test_the_announced_row_is_the_suspect_and_finished_rows_are_kept(chunk):
    records = pack_record(0, verdict(1.0)) + pack_record(1, verdict(0.0))
    found = investigate(chunk, Progress(7, 2, 0.0), records, was_at_work=True)
    said = [(each.row.id, one.score, one.verifier, one.version) for each, one in found.finished]
    assert said == [("0", 1.0, "a", "0.1.0+abc"), ("1", 0.0, "a", "0.1.0+abc")]
    assert found.suspect is chunk.tasks[2]
    assert ids(found.bystanders) == ["3"]


@pytest.mark.parametrize(
    "records",
    [
        b"\1",
        pack_record(4, verdict(1.0)),
        pack_record(0, b""),
        pack_record(0, b"[" * 100_000),
        pack_record(0, b"1"),
        pack_record(0, b"{}"),
        pack_record(0, b'["passed",1,null,null,{}]'),
        pack_record(0, b'["perfect",1,null,null,{},0]'),
        pack_record(0, b'["passed","all",null,null,{},0]'),
        pack_record(0, b'["passed",1,null,null,7,0]'),
        pack_record(0, b'["passed",1,null,null,{},"no time"]'),
    ],
)
def test_records_that_no_worker_makes_are_no_verdicts(chunk, records):
    with pytest.raises(ContractError):
        chunk.decoded(records)
    found = investigate(chunk, Progress(7, 2, 0.0), records, was_at_work=True)
    assert not found.finished
    assert found.suspect is chunk.tasks[2]
    assert ids(found.bystanders) == ["0", "1", "3"]


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


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b'{"class": "PluginError"}',
        b'{"class": "PluginError", "code": "RLVR-X999", "message": ""}',
        b'{"class": "PluginError", "code": "RLVR-P105", "message": "", "more": 1}',
        b'{"class": "did_you_mean", "code": "RLVR-P105", "message": ["RLVR-P106"]}',
    ],
)
def test_what_is_no_error_becomes_none(payload):
    with pytest.raises(ContractError):
        unpack_error(payload)
