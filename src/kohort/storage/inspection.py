# SPDX-License-Identifier: Apache-2.0
"""What the folders of a data directory hold, and what of it is damaged. Nothing is changed.

A log is looked at as its opening would, and further: every batch of every segment, and what stands
behind damage. `repair.py` does what is found here to be done.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from kohort.errors import Broken, WireError
from kohort.storage import checkpoints
from kohort.storage.directory import KAFKA_METADATA, Places
from kohort.storage.files import Files
from kohort.storage.open_files import OpenFiles
from kohort.storage.recovery import NOTHING, RecoveryPoint, never_begun, whole_batches
from kohort.storage.segment import Holes, Segment, file_stem, segment_bases
from kohort.storage.swaps import SWAP_SUFFIX, look_at_swap
from kohort.terms import Offset, TopicId, uuid_text
from kohort.wire import batch as batches
from kohort.wire.batch import BatchHeader

HERE = "."
"""The name under which the directory itself is told, beside its partitions."""


class Damage(NamedTuple):
    """One place that is not as it should be, and what a repair gives up there.

    Offsets from `first` on and before `behind`; `size_bytes` from `position` on in a file, 0 where
    it is the file that is missing. As many `batches` can be told apart.
    """

    file: str
    position: int
    size_bytes: int
    first: Offset
    behind: Offset
    batches: int
    reason: str


@dataclass(slots=True)
class LogInspection:
    """One partition's folder. `kept` has the stretches of bytes that a repair leaves of a segment,
    `aside` the files that it moves away. `error` says why the folder cannot be looked at.
    """

    name: str
    segments: int = 0
    size_bytes: int = 0
    batches: int = 0
    records: int = 0
    start: Offset = Offset(0)  # noqa: RUF009  (a number)
    end: Offset = Offset(0)  # noqa: RUF009
    expected_start: Offset = Offset(0)  # noqa: RUF009
    synced: Offset | None = None
    damages: list[Damage] = field(default_factory=list)
    kept: dict[Offset, list[tuple[int, int]]] = field(default_factory=dict)
    aside: list[str] = field(default_factory=list)
    missing: bool = False
    wrong_start: bool = False  # the directory's checkpoint has one that cannot be
    clean: bool = False
    error: str = ""


def inspect_log(
    files: Files,
    folder: str,
    recovery_point: RecoveryPoint,
    known_start: Offset,
    topic_id: TopicId | None = None,
) -> LogInspection:
    """Look at the folder of a partition, of the topic of that id where one is given. May raise
    OSError.
    """
    found = LogInspection(
        folder.rpartition("/")[2],
        synced=recovery_point.synced,
        start=known_start,
        clean=recovery_point.clean,
    )
    names = files.names(folder)
    holes = _small_files(files, folder, found)
    _look_at_topic_id(files, folder, found, topic_id)
    for name in names:
        if name.endswith(SWAP_SUFFIX) and segment_bases([name.removesuffix(".swap")]):
            _look_at_swap(files, folder, name, found)
    bases = segment_bases(names)
    if len(bases) > 1 and _last_was_never_begun(files, folder, bases):
        bases.pop()
    end: Offset | None = found.start
    if not bases:
        end = found.start  # a log without segments would begin there
    elif (
        recovery_point.synced is None
        or recovery_point.synced <= found.start
        or bases[0] <= found.start
    ):
        end = None  # nobody has noted where the log should begin, or it begins before that
    for base, behind in zip(bases, [*bases[1:], None], strict=False):
        if end is not None and end != base and (end, base) not in holes:
            reason = f"offsets {end} to {base - 1} are missing before this file"
            found.damages.append(Damage(f"{file_stem(base)}.log", 0, 0, end, base, 0, reason))
        segment = Segment(OpenFiles(files), folder, base, interval=1 << 30)
        segment.behind = behind
        strict = holes if behind is None and recovery_point != NOTHING else None
        end = _look_at(segment, found, strict, recovery_point if behind is None else _ALL)
        segment.file.close()
    found.end = (end or Offset(0)) if bases else Offset(0)
    if recovery_point.forbids_start(found.start, found.end):
        _note_wrong_start(files, folder, known_start, found)
    found.expected_start = found.start
    found.start = max(found.start, bases[0]) if bases else found.start
    _look_at_end(found, recovery_point)
    if bases and not found.damages:
        _look_at_point(found)
    return found


def inspect_all(
    files: Files,
    path: str,
    folders: list[str],
    topics: Container[str],
    ids: Mapping[str, TopicId] = MappingProxyType({}),
) -> Iterator[LogInspection]:
    """Look at the folders of partitions, one after the other, and at those of `topics` that should
    be there: a copy of a part of Kafka's directory speaks of others as well. `ids` are those of
    topics, as far as they are known. One that cannot be read does not stop the others. May raise
    OSError for the directory itself.
    """
    points, unread = _read_checkpoint(checkpoints.recovery_points, files, path)
    clean = checkpoints.CLEAN_SHUTDOWN in files.names(path)
    starts, _ = _read_checkpoint(checkpoints.start_offsets, files, path)
    for name in folders:
        place = checkpoints.split_name(name)
        topic_id = ids.get(place[0]) if place else None
        recovery_point = RecoveryPoint(
            points.get(place) if place else None, clean=clean, unread=unread
        )
        start = starts.get(place, Offset(0)) if place else Offset(0)
        try:
            found = inspect_log(files, f"{path}/{name}", recovery_point, start, topic_id)
        except OSError as error:
            found = LogInspection(
                name, synced=recovery_point.synced, error=f"cannot be read: {error}"
            )
        yield found
    for (topic, index), synced in points.items():
        name = f"{topic}-{index}"
        if synced and name not in folders and topic in topics and topic != KAFKA_METADATA:
            reason = f"the folder is missing, offsets before {synced} have been synced"
            damage = Damage(name, 0, 0, Offset(0), synced, 0, reason)
            yield LogInspection(name, synced=synced, damages=[damage], missing=True)


def noted_points(files: Files, path: str) -> dict[tuple[str, int], Offset]:
    """Up to which offset logs have been synced; empty when that cannot be read."""
    return _read_checkpoint(checkpoints.recovery_points, files, path)[0]


def _read_checkpoint(
    read: Callable[[Files, str], Places], files: Files, path: str
) -> tuple[dict[tuple[str, int], Offset], str]:
    """What a checkpoint says, and why it says nothing: `inspect_directory` tells that too."""
    try:
        return dict(read(files, path)), ""
    except (Broken, OSError) as error:
        return {}, str(error)


def inspect_directory(files: Files, path: str) -> LogInspection:
    """Look at the checkpoint files that a data directory has once. A broker does not use one that
    is damaged.
    """
    found = LogInspection(HERE)
    readers: list[tuple[str, Callable[[Files, str], Places]]] = [
        (checkpoints.RECOVERY_POINTS, checkpoints.recovery_points),
        (checkpoints.START_OFFSETS, checkpoints.start_offsets),
    ]
    for name, read in readers:
        try:
            read(files, path)
        except Broken as error:
            _set_aside(found, name, str(error))
        except OSError as error:
            _set_aside(found, name, f"cannot be read: {error}")
    return found


_ALL = RecoveryPoint(clean=True)  # of a closed segment: it was synced when the next was begun


def _last_was_never_begun(files: Files, folder: str, bases: list[Offset]) -> bool:
    opened = OpenFiles(files)
    before, last = (Segment(opened, folder, base, interval=1 << 30) for base in bases[-2:])
    try:
        return never_begun(before, last)
    finally:
        before.file.close()
        last.file.close()


def _small_files(files: Files, folder: str, found: LogInspection) -> Holes:
    """Look at what stands beside the segments: the holes that are known."""
    holes: Holes = {}
    try:
        holes = checkpoints.holes(files, folder)
    except Broken as error:
        _set_aside(found, checkpoints.HOLES, f"{error}; holes will be found again")
    try:
        own = checkpoints.start_offsets(files, folder)
        found.start = max(found.start, *own.values(), Offset(0))
    except Broken as error:
        _set_aside(found, checkpoints.START_OFFSETS, f"{error}; deleted records may come back")
    try:
        checkpoints.leader_epochs(files, folder)
    except Broken as error:
        reason = f"{error}; the epoch of the last batch will be taken"
        _set_aside(found, checkpoints.LEADER_EPOCHS, reason)
    return holes


def _look_at_topic_id(
    files: Files, folder: str, found: LogInspection, expected: TopicId | None
) -> None:
    try:
        named = checkpoints.topic_id(files, folder)
    except Broken as error:
        _set_aside(found, checkpoints.PARTITION_METADATA, str(error))
        return
    if None not in (named, expected) and named != expected:
        reason = (
            f"the folder belongs to topic id {uuid_text(named or b'')}, the catalog's is "
            f"{uuid_text(expected or b'')}; a repair gives the folder to the latter"
        )
        _set_aside(found, checkpoints.PARTITION_METADATA, reason)


def _set_aside(found: LogInspection, name: str, reason: str) -> None:
    found.aside.append(name)
    found.damages.append(Damage(name, 0, 0, Offset(0), Offset(0), 0, reason))


def _look_at_swap(files: Files, folder: str, name: str, found: LogInspection) -> None:
    base = segment_bases([name.removesuffix(".swap")])[0]
    _, reason = look_at_swap(files, folder, base)
    if reason:
        _set_aside(found, name, f"a finished cleaning cannot be put in place: {reason}")


def _look_at(
    segment: Segment, found: LogInspection, strict: Holes | None, recovery_point: RecoveryPoint
) -> Offset:
    """Look at one segment; where it ends for the next one: damage at its end reaches up to that."""
    found.segments += 1
    found.size_bytes += segment.size
    if segment.scan(check=True, holes=strict) is None:
        for _, header in segment.headers():
            found.batches += 1
            found.records += header.count
        return segment.end
    walk = _DamageScan(segment, strict, recovery_point)
    walk.run()
    found.kept[segment.base_offset] = walk.kept()
    found.batches += len(walk.good)
    found.records += sum(header.count for _, header, _ in walk.good)
    found.damages += walk.damages
    if walk.torn:
        return walk.end
    last = walk.damages[-1]
    return last.behind if last.position + last.size_bytes == segment.size else walk.end


def _note_wrong_start(files: Files, folder: str, known_start: Offset, found: LogInspection) -> None:
    """The log begins behind its end, though something of it was synced: where, is not known."""
    reason = (
        f"the log begins at offset {found.start}, and ends at {found.end}; "
        "deleted records may come back"
    )
    found.damages.append(Damage(checkpoints.START_OFFSETS, 0, 0, Offset(0), Offset(0), 0, reason))
    if checkpoints.START_OFFSETS in files.names(folder):
        found.aside.append(checkpoints.START_OFFSETS)
    found.wrong_start = known_start > found.end
    found.start = Offset(0)


def _look_at_end(found: LogInspection, recovery_point: RecoveryPoint) -> None:
    synced = recovery_point.synced
    if synced is None or found.end >= synced or found.start >= synced:
        return
    reason = f"the log ends at offset {found.end}, offsets before {synced} have been synced"
    found.damages.append(Damage(found.name, 0, 0, found.end, synced, 0, reason))


def _look_at_point(found: LogInspection) -> None:
    """A log that was closed in order ends where its line says, and nowhere else."""
    if not found.clean or found.synced in (None, found.end):
        return
    reason = (
        f"the log ends at offset {found.end}, its recovery point is {found.synced}, "
        "though it was closed in order"
    )
    name = checkpoints.RECOVERY_POINTS
    found.damages.append(Damage(name, 0, 0, found.end, max(found.end, found.synced), 0, reason))


class _DamageScan:
    """Goes through a damaged segment and tells the batches that are right from the rest."""

    def __init__(
        self, segment: Segment, strict: Holes | None, recovery_point: RecoveryPoint
    ) -> None:
        self.good: list[tuple[int, BatchHeader, Offset]] = []  # each with the end before it
        self.damages: list[Damage] = []
        self.end = segment.base_offset
        self.torn = False
        self._name = segment.path.rpartition("/")[2]
        self._data = segment.file.read(0, segment.size)
        self._behind = segment.behind
        self._strict = strict
        self._recovery_point = recovery_point

    def run(self) -> None:
        at = 0
        strict = self._strict
        while at < len(self._data):
            try:
                header = self._right(at, self.end, strict)
            except WireError as error:
                at = self._pass(at, str(error))
                strict = None  # what follows damage need not follow what stands before it
            else:
                self.good.append((at, header, self.end))
                self.end = Offset(header.last_offset + 1)
                at += header.length
                strict = self._strict
        self._cut()

    def _cut(self) -> None:
        """What nobody was promised goes from its first bad byte to the end of the file."""
        for number, damage in enumerate(self.damages):
            if self._recovery_point.covers(damage.first):
                continue
            more = self.damages[number:]
            after = [header for at, header, _ in self.good if at > damage.position]
            self.good = [each for each in self.good if each[0] < damage.position]
            self.damages[number:] = [
                damage._replace(
                    size_bytes=len(self._data) - damage.position,
                    behind=max(self.end, more[-1].behind),
                    batches=len(after) + sum(each.batches for each in more),
                    reason=f"torn: {damage.reason}",
                )
            ]
            self.end = damage.first
            self.torn = True
            return

    def kept(self) -> list[tuple[int, int]]:
        """The stretches of bytes that are right, each from its first to behind its last."""
        stretches: list[tuple[int, int]] = []
        for at, header, _ in self.good:
            if stretches and stretches[-1][1] == at:
                stretches[-1] = (stretches[-1][0], at + header.length)
            else:
                stretches.append((at, at + header.length))
        return stretches

    def _right(self, at: int, least: Offset, strict: Holes | None = None) -> BatchHeader:
        header = batches.header_at(self._data, at)
        batches.check(self._data, at, header)
        base = Offset(header.base_offset)
        if base < least or (strict is not None and base != least and (least, base) not in strict):
            raise WireError(f"base offset {base} comes after {least - 1}")
        if self._behind is not None and header.last_offset >= self._behind:
            raise WireError(f"last offset {header.last_offset} is in the next segment")
        return header

    def _pass(self, at: int, reason: str) -> int:
        """Note damage, and find where it ends."""
        if self._last_jumps() and self._is_right(at, self.good[-1][2]):
            position, _, self.end = self.good.pop()
            behind = at
        else:
            position = at
            behind = self._next(at)
        apart = 1 + len([*whole_batches(self._data[position + 1 : behind], 0, self.end)])
        if behind == len(self._data):
            apart = max(apart, self._claimed_end(position)[1])
        self.damages.append(
            Damage(
                file=self._name,
                position=position,
                size_bytes=behind - position,
                first=self.end,
                behind=self._offset_at(position, behind),
                batches=apart,
                reason=reason,
            )
        )
        return behind

    def _last_jumps(self) -> bool:
        """Whether the last good batch does not follow the one before it: it may be wrong."""
        return bool(self.good) and self.good[-1][1].base_offset != self.good[-1][2]

    def _is_right(self, at: int, least: Offset) -> bool:
        try:
            self._right(at, least)
        except WireError:
            return False
        return True

    def _next(self, at: int) -> int:
        """Where a right batch stands behind a bad one, or the end."""
        size = len(self._data)
        try:
            following = at + batches.peek(self._data, at).length
            if following == size or (following < size and self._is_right(following, self.end)):
                return following
        except WireError:
            pass
        for position, _ in whole_batches(self._data, at + 1, self.end):
            if self._is_right(position, self.end):
                return position
        return size

    def _offset_at(self, position: int, behind: int) -> Offset:
        """The offset behind a damaged stretch, as far as anything tells it."""
        if behind < len(self._data):
            return Offset(batches.peek(self._data, behind).base_offset)
        if self._behind is not None:
            return self._behind
        if self._recovery_point.synced is not None and self._recovery_point.synced > self.end:
            return self._recovery_point.synced
        return self._claimed_end(position)[0]

    def _claimed_end(self, position: int) -> tuple[Offset, int]:
        """Where bad batches end by what their headers say, as long as one follows the other from
        `position` on, and how many do.
        """
        end, number = self.end, 0
        while position < len(self._data):
            try:
                header = batches.peek(self._data, position)
            except WireError:
                break
            if header.base_offset != end:
                break
            end = Offset(header.last_offset + 1)
            position += header.length
            number += 1
        return end, number
