"""Every checker that listens to facts."""

from kohort.sim.checkers.checker import Checker
from kohort.sim.checkers.commits import Commits

CHECKERS: tuple[type[Checker], ...] = (Commits,)
