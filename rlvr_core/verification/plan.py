"""Which worker processes a set of verifiers needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlvr_core.api.plugin import Resource, Verifier
from rlvr_core.config.models import PluginEntry, VerificationSection
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.verification.machine import memory_bytes, usable_cores
from rlvr_core.verification.version import stamped_version

DEFAULT_CONCURRENCY = 32
"""Rows that a verifier which waits for a service judges at once."""
CPU_CHUNK_ROWS = 128
MODEL_CHUNK_ROWS = 256
"""A model wants large batches."""
RECYCLE_ROWS = 10_000
"""Rows after which a worker is replaced: symbolic caches grow."""
START_DEADLINE_S = {Resource.CPU: 120.0, Resource.IO: 120.0, Resource.MODEL: 1800.0}
"""For building the verifiers of a worker; a model may have to be fetched."""
IO_RETRY_WORKERS = 4


@dataclass(frozen=True, slots=True)
class Instance:
    """One verifier of the stack, as the parent needs to know it."""

    ref: PluginRef
    version: str
    """As stamped on its verdicts."""
    resource: Resource
    environment: tuple[str, ...]
    lowest_score: float
    highest_score: float
    timeout_s: float
    fails_on_timeout: bool
    concurrency: int

    @property
    def name(self) -> str:
        """Instance name."""
        return self.ref.name


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """Worker processes that serve the same verifiers and inherit the same environment."""

    instances: Mapping[str, Instance]
    resource: Resource
    environment: tuple[str, ...]
    processes: int
    lanes: int
    """Rows that one process works on at the same time."""
    rows_a_chunk: int
    """Rows handed to a lane at once, at most."""
    chunks_ahead: int
    """Chunks a process may hold, the one at work included."""
    retry_processes: int
    """Further processes for rows that are judged again, alone."""
    start_deadline_s: float
    recycle_rows: int | None
    """Rows after which a process is replaced."""
    memory_limit_bytes: int | None


def instance(ref: PluginRef, entry: PluginEntry, settings: VerificationSection) -> Instance | None:
    """Return what the parent must know of a verifier; None for a plugin that is not one."""
    cls = ref.load_class()
    if not issubclass(cls, Verifier):
        return None
    lowest_score, highest_score = ref.config.get("score_range", cls.score_range)
    return Instance(
        ref=ref,
        version=stamped_version(ref),
        resource=cls.resource,
        environment=tuple(sorted(cls.environment)),
        lowest_score=float(lowest_score),
        highest_score=float(highest_score),
        timeout_s=entry.timeout_s or settings.timeout_s,
        fails_on_timeout=(entry.on_timeout or settings.on_timeout) == "fail",
        concurrency=entry.concurrency or DEFAULT_CONCURRENCY,
    )


def with_members(
    refs: Iterable[tuple[PluginRef, PluginEntry]],
) -> Iterator[tuple[PluginRef, PluginEntry]]:
    """Yield plugins with their entries, and after each the verifiers that it asks, and theirs."""
    for ref, entry in refs:
        yield ref, entry
        # Deadlines of the entry that asks hold for members without deadlines of their own.
        own = {"timeout_s": entry.timeout_s, "on_timeout": entry.on_timeout}
        yield from with_members(
            (member.ref, member.entry.model_copy(update=_unset(member.entry, own)))
            for member in ref.members
        )


def plan_pools(instances: Sequence[Instance], cpu_processes: int) -> list[PoolPlan]:
    """Group verifiers into pools.

    All cpu verifiers that need the same environment share one pool, so that `cpu_processes` bounds
    them together. Instances of the same io or model plugin share one process.
    """
    grouped: dict[tuple[object, ...], list[Instance]] = {}
    for each in instances:
        key: tuple[object, ...] = (each.resource, each.environment)
        if each.resource is not Resource.CPU:
            key += (each.ref.value, each.concurrency)
        grouped.setdefault(key, []).append(each)
    return [_pool(members, cpu_processes) for members in grouped.values()]


def cpu_processes(settings: VerificationSection, local_processes: int) -> int:
    """Return the number of worker processes for cpu verifiers."""
    if settings.workers is not None:
        return settings.workers
    return max(1, (usable_cores() - 1) // max(1, local_processes))


def _unset(entry: PluginEntry, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the values that an entry does not set itself."""
    return {word: value for word, value in values.items() if getattr(entry, word) is None}


def _pool(members: Sequence[Instance], processes: int) -> PoolPlan:
    first = members[0]
    sizes: dict[Resource, dict[str, int]] = {
        Resource.CPU: {
            "processes": processes,
            "lanes": 1,
            "rows_a_chunk": CPU_CHUNK_ROWS,
            "chunks_ahead": 2,  # the next lies ready when one is done
            "retry_processes": processes,
        },
        Resource.IO: {
            "processes": 1,
            "lanes": first.concurrency,
            "rows_a_chunk": 1,
            "chunks_ahead": first.concurrency,
            "retry_processes": IO_RETRY_WORKERS,
        },
        # A second copy of a model may not fit beside the first: its retries wait for their turn.
        Resource.MODEL: {
            "processes": 1,
            "lanes": 1,
            "rows_a_chunk": MODEL_CHUNK_ROWS,
            "chunks_ahead": 1,
            "retry_processes": 1,
        },
    }
    return PoolPlan(
        instances={member.name: member for member in members},
        resource=first.resource,
        environment=first.environment,
        **sizes[first.resource],
        start_deadline_s=START_DEADLINE_S[first.resource],
        # Loading a model again costs more than a symbolic cache ever will.
        recycle_rows=None if first.resource is Resource.MODEL else RECYCLE_ROWS,
        memory_limit_bytes=_half_of_memory() if first.resource is Resource.CPU else None,
    )


def _half_of_memory() -> int | None:
    """Return half of the machine's memory: one hostile row must not take the trainer down."""
    whole = memory_bytes()
    return None if whole is None else whole // 2
