"""No answer leaves before what it tells is on the disk, where a loss of power leaves it.

This checker looks at the disk, not at the broker: only what was synced counts, the bytes of a file
as well as the names on the way to it.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from kohort.errors import WireError
from kohort.records import schemas
from kohort.records.codec import decode as decode_record
from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.disk import Content, Directory, MemoryFiles
from kohort.sim.network import Line
from kohort.wire import batch as batches
from kohort.wire.apis import APIS
from kohort.wire.codec import decode
from kohort.wire.frames import FrameReader, decode_request_header, peek

PRODUCE, COMMIT, HEARTBEAT = 0, 8, 68
LOOKED_AT = frozenset({PRODUCE, COMMIT, HEARTBEAT})
DATA = "data"
GROUPS = "__consumer_offsets-"


class _Wire:
    """The requests and answers of one connection, as they pass."""

    def __init__(self) -> None:
        self.requests = FrameReader(1 << 28)
        self.answers = FrameReader(1 << 28)
        self.waiting: deque[tuple[int, int, int, Any]] = deque()  # key, version, number, request


class _Read(NamedTuple):
    """How much of a file was looked at, and how often synced bytes had been replaced by then."""

    file: Content  # kept, so that no other one gets its identity
    end: int
    replaced: int


class Durable(Checker):
    """Watches the wire. `disk` is the disk of now, `name_of` the name of a topic by its id."""

    name: ClassVar[str] = "durable"

    def __init__(
        self,
        alarm: Alarm,
        disk: Callable[[], MemoryFiles],
        name_of: Callable[[bytes], str | None],
    ) -> None:
        super().__init__(alarm)
        self._disk = disk
        self._name_of = name_of
        self._wires: dict[Line, _Wire] = {}
        self._read: dict[int, _Read] = {}  # by the identity of a file's content
        self._ends: dict[str, int] = {}  # folder: the end of what was ever synced
        self._folders: dict[str, tuple[MemoryFiles, Directory]] = {}
        self._commits: dict[tuple[str, str, int], int] = {}
        self._removed: set[tuple[str, str, int]] = set()  # since an answer told of them
        self._epochs: dict[tuple[str, str], int] = {}

    def arrived(self, line: Line, data: bytes, *, to_broker: bool) -> None:
        """Note the requests."""
        if not to_broker:
            return
        wire = self._wires.setdefault(line, _Wire())
        try:
            for frame in wire.requests.feed(data):
                key, version, number = peek(frame)
                request = None
                if key in LOOKED_AT and version in APIS[key].request.versions:
                    api = APIS[key]
                    start = decode_request_header(frame, flexible=api.flexible(version))[1]
                    request = decode(api.request, version, frame, start)
                if not (key == PRODUCE and request is not None and request.acks == 0):
                    wire.waiting.append((key, version, number, request))
        except WireError:
            return  # somebody hostile: the broker closes the connection

    def leaves(self, line: Line, data: bytes) -> None:
        """The broker hands an answer to the network."""
        wire = self._wires.get(line)
        if wire is None:
            return
        for frame in wire.answers.feed(data):
            if not wire.waiting:
                return
            key, version, number, request = wire.waiting.popleft()
            if request is None or int.from_bytes(frame[:4]) != number:
                continue
            api = APIS[key]
            start = 5 if api.flexible(version) else 4
            self._judge(key, request, decode(api.response, version, frame, start))

    def _judge(self, key: int, request: Any, answer: Any) -> None:
        if key == PRODUCE:
            self._judge_produce(answer)
        elif key == COMMIT:
            self._judge_commit(request, answer)
        elif not answer.error_code and answer.member_epoch > 0:
            self._look(GROUPS)
            member = request.group_id, answer.member_id
            if self._epochs.get(member, -1) < answer.member_epoch:
                self.alarm(
                    f"{member[1]} of {member[0]} is told epoch {answer.member_epoch},"
                    f" on the disk is {self._epochs.get(member, -1)}"
                )

    def _judge_produce(self, answer: Any) -> None:
        for topic in answer.responses:
            name = topic.name or self._name_of(topic.topic_id)
            for part in topic.partition_responses:
                if part.error_code or name is None:
                    continue
                folder = f"{name}-{part.index}"
                self._look(folder)
                if self._ends.get(folder, 0) <= part.base_offset:
                    self.alarm(
                        f"offset {part.base_offset} of {folder} is acknowledged, "
                        f"on the disk it ends at {self._ends.get(folder, 0)}"
                    )

    def _judge_commit(self, request: Any, answer: Any) -> None:
        self._look(GROUPS)
        asked: dict[tuple[str, int], int] = {}  # the least, where somebody asks twice
        for topic in request.topics:
            for place in topic.partitions:
                at = topic.name, place.partition_index
                asked[at] = min(asked.get(at, place.committed_offset), place.committed_offset)
        for topic in answer.topics:
            for part in topic.partitions:
                offset = asked.get((topic.name, part.partition_index))
                commit = request.group_id, topic.name, part.partition_index
                known = self._commits.get(commit, -1)
                if part.error_code or not topic.name or offset is None:
                    continue
                # What was removed as well since the last look may be cleaned away already.
                if known < offset and commit not in self._removed:
                    self.alarm(f"{commit} is acknowledged at {offset}, on the disk is {known}")
                self._removed.discard(commit)

    def _look(self, beginning: str) -> None:
        """Read what has been synced since the last look, in folders with this beginning."""
        disk = self._disk()
        root = disk.root.synced.get(DATA)
        if root is None or isinstance(root, Content):
            return
        for folder in self._ends.keys() - root.now.keys() - root.synced.keys():
            del self._ends[folder]  # the topic is deleted: one made anew begins at 0
        for folder, node in root.synced.items():
            if folder.startswith(beginning) and not isinstance(node, Content):
                before = self._folders.get(folder)
                if before is not None and before[0] is disk and before[1] is not node:
                    self._ends.pop(folder, None)  # another topic of that name
                self._folders[folder] = disk, node
                for name, file in node.synced.items():
                    if name.endswith(".log") and isinstance(file, Content):
                        self._read_on(folder, file)

    def _read_on(self, folder: str, file: Content) -> None:
        before = self._read.get(id(file))
        # Behind an end that was cut off other batches may begin elsewhere: read all of it again.
        at = 0 if before is None or before.replaced != file.replaced else before.end
        data = file.synced[at:]
        try:
            for position, header in batches.walk(data):
                batches.check(data, position, header)
                self._ends[folder] = max(self._ends.get(folder, 0), header.last_offset + 1)
                if folder.startswith(GROUPS) and not header.is_control:
                    self._take(data[position : position + header.length])
                at += header.length
        except WireError:
            pass  # a torn or damaged end: what is before it counts
        self._read[id(file)] = _Read(file, at, file.replaced)

    def _take(self, data: bytes) -> None:
        for _, _, key, value in batches.entries(data):
            if key is None:
                continue
            record = decode_record(key, value)
            subject, content = record.key, record.value
            if isinstance(subject, schemas.OffsetCommitKey):
                place = subject.group, subject.topic, subject.partition
                if content is None:
                    self._removed.add(place)
                    continue
                offset = content.offset  # type: ignore[union-attr]
                self._commits[place] = max(self._commits.get(place, -1), offset)
            elif content is not None and isinstance(
                subject, schemas.ConsumerGroupCurrentMemberAssignmentKey
            ):
                member = subject.group_id, subject.member_id
                epoch = content.member_epoch  # type: ignore[union-attr]
                self._epochs[member] = max(self._epochs.get(member, -1), epoch)
