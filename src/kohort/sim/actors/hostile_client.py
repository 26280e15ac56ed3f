# SPDX-License-Identifier: Apache-2.0
"""Sends requests of every API with whatever in them, and bytes that are no requests at all.

Names are its own, so what it does by accident concerns nobody else. Much of it is refused or closes
its connection; nothing of it may be answered with UNKNOWN_SERVER_ERROR, and others are served
meanwhile.
"""

from typing import Any, ClassVar

from kohort.errors import ErrorCode
from kohort.sim.actors.actor import Actor
from kohort.sim.codes import says
from kohort.sim.events import EPOCH_SECONDS
from kohort.sim.network import Line
from kohort.sim.process import HOST, PORT
from kohort.wire import batch as batches
from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.frames import FrameReader, RequestHeader, encode_request
from kohort.wire.messages.create_acls import CreateAclsResponse
from kohort.wire.schema import Field, Primitive, fields_of

NAMES = ("evil", "evil-2", "", "e" * 300, "\udcff", "../evil", "evil topic")
NUMBERS = (-(1 << 31), -2, -1, 0, 1, 2, 7, 300, (1 << 15) - 1, (1 << 31) - 1, 1 << 62)
DEEPEST = 5
MAKE_TOPICS = frozenset({3, 10, 19})  # Metadata, FindCoordinator, CreateTopics
OWN = frozenset({20070, 20071})  # drawn apart, so that a seed that is known keeps its requests
OWN_PART = 0.03
WIDTHS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


class HostileClient(Actor):
    """One connection at a time, until the broker closes it."""

    kind: ClassVar[str] = "hostile"

    def __init__(self, stage: Any, number: int) -> None:
        super().__init__(stage, number)
        self.line: Line | None = None
        self._answers = FrameReader(1 << 28)
        self._asked: dict[int, tuple[int, int]] = {}
        self._numbers = 0
        self._own = stage.stream(f"own APIs of {self.name}")

    async def live(self) -> None:
        while not self.over:
            await self.pause(self.random.randrange(10, 3000))
            if self.line is None or self.line.broken:
                if self.line is not None:
                    self.line.close()  # its end, heard late, would pass for the new one's
                node = self.random.randrange(self.stage.nodes)
                self._answers = FrameReader(1 << 28)
                self._asked.clear()
                self.line = self.stage.network.connect(self.stage.loop, (HOST, PORT + node), self)
            if self.line is not None:
                self.line.send(self._bytes())
                if self.random.random() < 0.05:
                    self.line.close()
        if self.line is not None:
            self.line.close()

    def received(self, data: bytes) -> None:
        """Look for answers that say that the broker has failed."""
        for frame in self._answers.feed(data):
            known = self._asked.pop(int.from_bytes(frame[:4]), None)
            if known is not None:
                key, version = known
                api = APIS[key]
                start = 5 if api.flexible(version) and key != 18 else 4
                answer = codec.decode(api.response, version, frame, start)
                # Upstream says so of a rule with ANY in it, and so do we.
                failed = says(answer, ErrorCode.UNKNOWN_SERVER_ERROR)
                if failed and not isinstance(answer, CreateAclsResponse):
                    self.alarm(f"has made {api.name} v{version} fail: {answer}")

    def lost(self) -> None:
        """The broker has had enough."""
        self.line = None

    def _bytes(self) -> bytes:
        """A request, as it should be or damaged."""
        random = self.random
        frame = b""
        while not frame:
            frame = self._request()
        chance = random.random()
        if chance < 0.5:
            return frame
        if chance < 0.55:
            return random.randbytes(random.randrange(1, 60))
        damaged = bytearray(frame)
        self._asked.clear()  # whatever it is now, nothing is expected of its answer
        if chance < 0.75:
            for _ in range(random.randint(1, 4)):
                damaged[random.randrange(4, len(damaged))] = random.randrange(256)
        elif chance < 0.85:
            at = random.randrange(4, len(damaged))
            damaged[at:at] = random.choice([b"\xff\xff\xff\xff", b"\x7f\xff", b"\xc3\x28", b"\x00"])
        else:
            del damaged[random.randrange(8, len(damaged) + 1) :]
        if random.random() < 0.9:  # else it ends too early, or goes on too long
            damaged[:4] = (len(damaged) - 4).to_bytes(4)
        return bytes(damaged)

    def _request(self) -> bytes:
        random = self.random
        # Where there is a new topic, groups with expressions look at all topics anew: no rest.
        keys = sorted(APIS.keys() - OWN - MAKE_TOPICS if self.calm else APIS.keys() - OWN)
        key = random.choice(keys)
        if self._own.random() < OWN_PART:
            key = self._own.choice(sorted(OWN))
        api = APIS[key]
        version = random.randint(api.versions.first, api.versions.last)
        self._numbers += 1
        header = RequestHeader(
            request_api_key=api.key,
            request_api_version=version,
            correlation_id=self._numbers,
            client_id="evil",
        )
        try:
            body = codec.encode(self._message(api.request, version, DEEPEST), version)
        except Exception:  # noqa: BLE001  (what cannot be encoded cannot be sent)
            return b""
        self._asked[self._numbers] = api.key, version
        return encode_request(header, body, flexible=api.flexible(version))

    def _message(self, cls: Any, version: int, depth: int) -> Any:
        random = self.random
        values: dict[str, Any] = {}
        for field in fields_of(cls):
            if field.array:
                count = random.choice([0, 1, 1, 2, 3]) if depth else 0
                values[field.name] = [self._one(field, version, depth - 1) for _ in range(count)]
            elif version in field.nullable and random.random() < 0.3:
                values[field.name] = None
            else:
                values[field.name] = self._one(field, version, depth)
        return cls(**values)

    def _one(self, field: Field, version: int, depth: int) -> Any:
        random = self.random
        if not isinstance(field.of, Primitive):
            return self._message(field.of, version, depth)
        name = field.of.name
        if name in WIDTHS:
            most = (1 << WIDTHS[name]) - 1
            return max(min(random.choice(NUMBERS), most), 0 if name[0] == "u" else -most - 1)
        if name == "bool":
            return random.random() < 0.5
        if name == "string":
            return random.choice(NAMES)
        if name == "uuid":
            return random.randbytes(16)
        if name == "records" and random.random() < 0.7:
            return batches.build([(b"k", b"v")] * random.randrange(4), EPOCH_SECONDS * 1000)
        if name in ("bytes", "records"):
            return random.randbytes(random.randrange(30))
        return random.random()
