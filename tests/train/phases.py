"""Hearing of every phase of a run, in the run."""

from rlvr_core.train.place import Place


class Phases(Place):
    """Tells a function of every phase that begins."""

    def __init__(self, tell):
        super().__init__()
        self._tell = tell

    def enter(self, phase, step=0):
        super().enter(phase, step)
        self._tell(phase)
