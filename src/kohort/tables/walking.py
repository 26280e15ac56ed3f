# SPDX-License-Identifier: Apache-2.0
"""Several directories of tables, one for each of several clusters, asked as one. A directory that
cannot be read is told by its name, and the others answer all the same.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from kohort.errors import KohortError
from kohort.pipeline.format.arrow_reader import GoneError
from kohort.pipeline.format.cluster import check_apart
from kohort.pipeline.format.manifest import TablesError
from kohort.tables.snapshots import Snapshot, Snapshots

TRIES = 3
"""How often a directory is opened whose files go meanwhile, as when a run replaces them."""
Answer = TypeVar("Answer")
Opens = Callable[[str | Path], Snapshot]


class UnreadableDirectory(NamedTuple):
    """A directory that has no part in an answer."""

    directory: str
    cluster: str | None
    """The cluster's name, where that much can be read."""
    error: KohortError

    @property
    def why(self) -> str:
        """One sentence, with the directory."""
        text = str(self.error)
        named = text.startswith(self.directory) or f" {self.directory} " in text
        return text if named else f"{self.directory}: {text}"


def answered(
    directories: Iterable[str | Path], ask: Callable[[Snapshots], Answer], opens: Opens
) -> tuple[Answer, list[UnreadableDirectory]]:
    """What `ask` makes of the tables of all directories that can be read, and the others.

    Where files go meanwhile it is asked again. Raises KohortError: the question itself is wrong, or
    no directory can be read; a single one is told by its own error.
    """
    places = list(directories)
    tries = [TRIES] * len(places)
    lost: dict[int, UnreadableDirectory] = {}
    while True:
        members = _opened(places, lost, opens)
        if places and not members:
            _refuse([lost[number] for number in sorted(lost)])
        try:
            answer = ask(Snapshots(list(members.values())))
        except TablesError as error:
            found = [
                number for number, member in members.items() if member.directory == error.directory
            ]
            if not found:
                raise
            tries[found[0]] -= 1
            if not isinstance(error, GoneError) or not tries[found[0]]:
                lost[found[0]] = _lost(members[found[0]], error)
        else:
            return answer, [lost[number] for number in sorted(lost)]


def _opened(
    places: Sequence[str | Path], lost: dict[int, UnreadableDirectory], opens: Opens
) -> dict[int, Snapshot]:
    """The tables of directories that are not lost and whose rows can be told apart."""
    members: dict[int, Snapshot] = {}
    for number, place in enumerate(places):
        if number in lost:
            continue
        try:
            member = opens(place)
        except KohortError as error:
            lost[number] = UnreadableDirectory(str(place), None, error)
            continue
        try:
            if len(places) > 1:
                check_apart(
                    (opened.directory, opened.cluster) for opened in (*members.values(), member)
                )
        except TablesError as error:
            lost[number] = _lost(member, error)
        else:
            members[number] = member
    return members


def _lost(member: Snapshot, error: KohortError) -> UnreadableDirectory:
    return UnreadableDirectory(str(member.directory), member.cluster, error)


def _refuse(lost: list[UnreadableDirectory]) -> None:
    if len(lost) == 1:
        raise lost[0].error
    raise TablesError("; ".join(absent.why for absent in lost))
