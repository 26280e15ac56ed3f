# SPDX-License-Identifier: Apache-2.0
"""No answer leaves before what it tells is on the disk, where a loss of power leaves it.

This checker looks at the disk, not at the broker: only what was synced counts, the bytes of a file
as well as the names on the way to it. `evidence/table.py` says for each API what that must be.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from kohort.errors import WireError
from kohort.sim.checkers.checker import Alarm, Checker
from kohort.sim.checkers.evidence.exchange import Exchange
from kohort.sim.checkers.evidence.table import EVIDENCE
from kohort.sim.checkers.synced_disk import GROUPS, NOW, Mark, SyncedDisk
from kohort.sim.disk import SimulatedFiles
from kohort.sim.network import Line
from kohort.wire.apis import APIS
from kohort.wire.codec import decode
from kohort.wire.frames import FrameReader, decode_request_header, peek

PRODUCE = 0
LOOKED_AT = frozenset(key for key, api in APIS.items() if api.name in EVIDENCE)
IN_THE_CATALOG = frozenset(
    {
        "CreateTopics", "DeleteTopics", "CreatePartitions", "CreateAcls", "DeleteAcls",
        "AlterUserScramCredentials",
    }
)  # fmt: skip


class _Request(NamedTuple):
    """A request on a connection. `message` is None where nobody looks at its answer."""

    key: int
    version: int
    number: int
    message: Any
    since: Mark


class _Wire:
    """The requests and answers of one connection, as they pass."""

    def __init__(self) -> None:
        self.requests = FrameReader(1 << 28)
        self.answers = FrameReader(1 << 28)
        self.waiting: deque[_Request] = deque()


class DurabilityChecker(Checker):
    """Watches the wire. `disk` is the disk of now, `name_of` the name of a topic by its id.

    Without `logs_are_synced` (log.sync=none) the catalog alone is judged.
    """

    name: ClassVar[str] = "durable"

    def __init__(
        self,
        alarm: Alarm,
        disk: Callable[[], SimulatedFiles],
        name_of: Callable[[bytes], str | None],
        *,
        logs_are_synced: bool = True,
    ) -> None:
        super().__init__(alarm)
        self._name_of = name_of
        self._wires: dict[Line, _Wire] = {}
        self._disk = disk
        self._synced = SyncedDisk(disk)
        self._keys = frozenset(
            key for key in LOOKED_AT if logs_are_synced or APIS[key].name in IN_THE_CATALOG
        )

    def directory_synced(self) -> None:
        """A name may have become durable: no catalog that was on the disk is missed."""
        self._synced.look_at_catalog()

    def arrived(self, line: Line, data: bytes, *, to_broker: bool) -> None:
        """Note the requests."""
        if not to_broker:
            return
        wire = self._wires.setdefault(line, _Wire())
        try:
            for frame in wire.requests.feed(data):
                key, version, number = peek(frame)
                message = None
                if key in self._keys and version in APIS[key].request.versions:
                    api = APIS[key]
                    start = decode_request_header(frame, flexible=api.flexible(version))[1]
                    message = decode(api.request, version, frame, start)
                if not (key == PRODUCE and message is not None and message.acks == 0):
                    if message is not None:  # the catalog was looked at when its name was synced
                        self._synced.look(GROUPS)
                    mark = self._synced.mark()
                    wire.waiting.append(_Request(key, version, number, message, mark))
        except (WireError, UnicodeDecodeError):
            return  # somebody hostile: the broker closes the connection

    def leaves(self, line: Line, data: bytes) -> None:
        """The broker hands an answer to the network."""
        wire = self._wires.get(line)
        if wire is None:
            return
        for frame in wire.answers.feed(data):
            if not wire.waiting:
                return
            asked = wire.waiting.popleft()
            if asked.message is None or int.from_bytes(frame[:4]) != asked.number:
                continue
            api = APIS[asked.key]
            start = 5 if api.flexible(asked.version) else 4
            answer = decode(api.response, asked.version, frame, start)
            self._judge(
                api.name, Exchange(asked.message, answer, asked.version, asked.since, self._name_of)
            )

    def _judge(self, api: str, exchange: Exchange) -> None:
        """The cleaner may have taken away what was not looked at in time: only what a reading of
        the whole disk does not show either is missing.
        """
        for _ in EVIDENCE[api](self._synced, exchange):
            whole = SyncedDisk(self._disk)
            for text in EVIDENCE[api](whole, exchange._replace(since=NOW)):
                self.alarm(f"{api}: {text}")
                return
            return
