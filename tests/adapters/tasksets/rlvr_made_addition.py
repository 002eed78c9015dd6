"""Tasksets of the library ``verifiers``: one that a reply decides, and some that need more."""

from __future__ import annotations

from collections.abc import Iterator

import verifiers.v1 as vf


class AdditionData(vf.TaskData):
    answer: str


class AdditionTask(vf.Task[AdditionData]):
    @vf.reward
    async def exact(self, trace: vf.Trace) -> float:
        if trace.last_reply == "stumble":
            raise RuntimeError("the reward stumbled")
        return float(trace.last_reply == self.data.answer)

    @vf.reward(weight=0.5)
    async def short(self, trace: vf.Trace) -> float:
        assert [message.role for message in trace.messages][-1] == "assistant"
        return float(len(trace.last_reply) < 4)

    @vf.metric
    async def length(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply))


class AdditionConfig(vf.TasksetConfig):
    tasks: int = 200
    needs: str = ""


class ContainerTask(AdditionTask):
    NEEDS_CONTAINER = True


class LookingTask(AdditionTask):
    @vf.reward
    async def looks(self, trace: vf.Trace, runtime: vf.Runtime) -> float:
        return 1.0


class PreparedTask(AdditionTask):
    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        return None


KINDS = {
    "": AdditionTask,
    "container": ContainerTask,
    "runtime": LookingTask,
    "setup": PreparedTask,
}


class AdditionTaskset(vf.Taskset[AdditionTask, AdditionConfig]):
    def load(self) -> Iterator[AdditionTask]:
        for number in range(self.config.tasks):
            data = AdditionData(
                prompt=f"What is {number} + 1?", system_prompt="Be brief.", answer=str(number + 1)
            )
            yield KINDS[self.config.needs](data, self.config.task)


__all__ = ["AdditionTaskset"]
