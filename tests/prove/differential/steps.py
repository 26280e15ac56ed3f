# SPDX-License-Identifier: Apache-2.0
"""A sequence as a value: steps, and the places in them that only a running broker can fill.

A step names its sender, an API, a version and the fields of the request. What depends on earlier
answers (a member id, the generation that a member lives in) stands there as a `Ref` and is looked
up, for each of the two brokers by itself, in what that broker has said so far. So a sequence does
not depend on a run: it can be played again, and steps can be left out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kohort.errors import WireError
from kohort.records.consumer_protocol import decode_assignment
from kohort.wire.apis import APIS
from kohort.wire.schema import Primitive, fields_of

API_BY_NAME = {api.name: api for api in APIS.values()}
UNKNOWN_ID = bytes.fromhex("6b6f686f727420686173206e6f742069")
NO_ID = bytes(16)


@dataclass
class Membership:
    """What one sender knows of itself, from the answers of one broker."""

    member_id: str = ""
    generation: int = -1
    epoch: int = 0
    protocol: str | None = None
    leads: bool = False
    members: list[str] = field(default_factory=list)
    says: list[bytes] = field(default_factory=list)  # what these say of themselves
    owned: dict[bytes, list[int]] = field(default_factory=dict)
    read: dict[str, list[int]] = field(default_factory=dict)  # as a classic member, by name
    unknown: bool = False  # the broker has refused its id at the last join


@dataclass
class Memory:
    """What one broker has said. `prefix` keeps the names of this run from those of others."""

    prefix: str
    members: dict[str, Membership] = field(default_factory=dict)
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    producers: list[tuple[int, int]] = field(default_factory=list)
    sessions: dict[str, int] = field(default_factory=dict)
    labels: dict[Any, str] = field(default_factory=dict)
    started_ms: int = 0
    transaction_coordinators: dict[str, tuple[int, int]] = field(default_factory=dict)
    sequences: dict[Any, int] = field(default_factory=dict)

    def of(self, actor: str) -> Membership:
        return self.members.setdefault(actor, Membership())


class Ref:
    """A value that is known when the step is sent."""

    def on(self, memory: Memory) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Name(Ref):
    """A name of this run: a group, a topic."""

    text: str

    def on(self, memory: Memory) -> str:
        return memory.prefix + self.text


@dataclass(frozen=True)
class MemberOf(Ref):
    """The id that a sender was given last."""

    actor: str

    def on(self, memory: Memory) -> str:
        return memory.of(self.actor).member_id


@dataclass(frozen=True)
class ConsumerOf(Ref):
    """The same in a consumer group, where a sender names itself before it has been given an id."""

    actor: str

    def on(self, memory: Memory) -> str:
        return memory.of(self.actor).member_id or f"m-{self.actor}"


@dataclass(frozen=True)
class GenerationOf(Ref):
    actor: str
    plus: int = 0

    def on(self, memory: Memory) -> int:
        return memory.of(self.actor).generation + self.plus


@dataclass(frozen=True)
class EpochOf(Ref):
    actor: str
    plus: int = 0

    def on(self, memory: Memory) -> int:
        return memory.of(self.actor).epoch + self.plus


@dataclass(frozen=True)
class ProtocolOf(Ref):
    """The protocol that the group has chosen, as far as the sender knows."""

    actor: str

    def on(self, memory: Memory) -> str | None:
        return memory.of(self.actor).protocol


@dataclass(frozen=True)
class IdOf(Ref):
    """The id of a topic. One that was never made has an id that nobody knows."""

    topic: str

    def on(self, memory: Memory) -> bytes:
        return NO_ID if not self.topic else memory.topic_ids.get(self.topic, UNKNOWN_ID)


@dataclass(frozen=True)
class OwnedBy(Ref):
    """The partitions that a sender says it has: all, none, some of them, or one too many."""

    actor: str
    how: str = "all"

    def on(self, memory: Memory) -> list[dict[str, Any]]:
        owned = memory.of(self.actor).owned
        if self.how == "none":
            return []
        ids = sorted(owned, key=lambda one: memory.labels.get(one, ""))
        if self.how == "foreign":
            return [{"topic_id": UNKNOWN_ID, "partitions": [0, 99]}]
        keep = {"all": None, "first": 1, "less": -1}[self.how]
        return [{"topic_id": one, "partitions": owned[one][:keep]} for one in ids]


@dataclass(frozen=True)
class AssignedBy(Ref):
    """What a leader sends with SyncGroup: something for every member; followers send nothing.

    `how` is `leader` for that, `always` when a follower sends it too, `partly` when the last member
    is left out.
    """

    actor: str
    how: str = "leader"

    def on(self, memory: Memory) -> list[dict[str, Any]]:
        membership = memory.of(self.actor)
        if not membership.leads and self.how != "always":
            return []
        names = sorted(membership.members, key=lambda one: label_of(memory, one))
        if self.how == "partly":
            names = names[:-1]
        return [
            {"member_id": one, "assignment": b"\0\0" + label_of(memory, one).encode()}
            for one in names
        ]


@dataclass(frozen=True)
class BatchOf(Ref):
    """Bytes of a batch, made by a function of `values` when the time of the run is known."""

    make: str
    arguments: tuple[Any, ...] = ()

    def on(self, memory: Memory) -> bytes:
        from tests.prove.differential import batches

        return batches.MAKERS[self.make](memory, *self.arguments)


@dataclass(frozen=True)
class TimeOf(Ref):
    """A time of this run: so many milliseconds after its start, equal on both brokers."""

    plus: int = 0

    def on(self, memory: Memory) -> int:
        return memory.started_ms + self.plus


@dataclass(frozen=True)
class ProducerOf(Ref):
    """The producer id that was given as the nth one, and `epoch` for its epoch instead."""

    place: int = 0
    epoch: bool = False
    plus: int = 0

    def on(self, memory: Memory) -> int:
        if self.place >= len(memory.producers):
            return -1
        return memory.producers[self.place][self.epoch] + self.plus


@dataclass(frozen=True)
class SessionOf(Ref):
    """The id of a sender's fetch session."""

    actor: str

    def on(self, memory: Memory) -> int:
        return memory.sessions.get(self.actor, 0)


@dataclass(frozen=True)
class Step:
    """One request. `queued` sends it behind one of the same sender that is not answered yet;
    otherwise a sender that waits opens another connection.
    """

    actor: str
    api: str
    version: int
    fields: dict[str, Any]
    queued: bool = False
    group: str = ""  # whose shard decides, where the fields do not say it

    @property
    def answered(self) -> bool:
        """Whether an answer is to be expected at all."""
        return not (self.api == "Produce" and self.fields.get("acks") == 0)

    @property
    def unsettles(self) -> bool:
        """Whether members of consumer groups may have something to do behind it."""
        changed = ("ConsumerGroupHeartbeat", "CreateTopics", "DeleteTopics", "CreatePartitions")
        return self.api in changed

    @property
    def is_request(self) -> bool:
        return self.api in API_BY_NAME


RESTART = Step("", "restart", 0, {})
"""Not a request: both brokers are killed and started again."""

SETTLE = Step("", "settle", 0, {})
"""Not a request: members of consumer groups send heartbeats until nothing changes any more."""

PAUSE = Step("", "pause", 0, {})
"""Not a request: for a while nobody says anything."""


def label_of(memory: Memory, value: Any) -> str:
    """How an id is called in both brokers; one that nobody was told yet is called by its client."""
    known = memory.labels.get(value)
    if known is not None:
        return known
    if isinstance(value, bytes):
        return "unknown id" if value == UNKNOWN_ID else "new id"
    if isinstance(value, str) and len(value) >= 37 and value[-37] == "-":
        return f"{value[:-37]}-unheard"
    return f"{value}"


def on(value: Any, memory: Memory) -> Any:
    """A value with its references looked up."""
    if isinstance(value, Ref):
        return value.on(memory)
    if isinstance(value, dict):
        return {key: on(one, memory) for key, one in value.items()}
    if isinstance(value, list):
        return [on(one, memory) for one in value]
    return value


def message(cls: Any, fields: dict[str, Any]) -> Any:
    """A request from plain fields. Raises KeyError for a field that the message has not got."""
    known = {one.name: one for one in fields_of(cls)}
    values = {}
    for name, value in fields.items():
        of = known[name].of
        if isinstance(of, Primitive) or value is None:
            values[name] = value
        elif known[name].array:
            values[name] = [message(of, one) for one in value]
        else:
            values[name] = message(of, value)
    return cls(**values)


def plain(message: Any, version: int) -> dict[str, Any]:
    """An answer as plain values: the fields that its version has."""
    out = {}
    for one in fields_of(type(message)):
        if version in one.versions:
            value = getattr(message, one.name)
            if not isinstance(one.of, Primitive) and value is not None:
                value = [plain(x, version) for x in value] if one.array else plain(value, version)
            out[one.name] = value
    return out


def without(steps: list[Step], start: int, stop: int) -> list[Step]:
    return [*steps[:start], *steps[stop:]]


# --- learning


def learn(memory: Memory, step: Step, request: dict[str, Any], answer: dict[str, Any]) -> None:
    """Remember what an answer tells its sender."""
    if step.api == "JoinGroup":
        _learn_join(memory, step.actor, request, answer)
    elif step.api == "SyncGroup" and not answer["error_code"]:
        _learn_sync(memory, step.actor, answer)
    elif step.api == "ConsumerGroupHeartbeat" and not answer["error_code"]:
        _learn_heartbeat(memory, step.actor, request, answer)
    elif step.api == "InitProducerId" and answer["producer_id"] >= 0:
        memory.labels.setdefault(("producer", answer["producer_id"]), _next(memory, "producer"))
        memory.producers.append((answer["producer_id"], answer["producer_epoch"]))
        memory.transaction_coordinators[step.actor] = memory.producers[-1]
    elif step.api == "EndTxn" and answer.get("producer_id", -1) >= 0:
        memory.transaction_coordinators[step.actor] = (
            answer["producer_id"],
            answer["producer_epoch"],
        )
    elif step.api == "Fetch" and answer.get("session_id"):
        memory.sessions[step.actor] = answer["session_id"]
        memory.labels.setdefault(("session", answer["session_id"]), _next(memory, "session"))


def learn_topics(memory: Memory, ids: dict[str, bytes]) -> None:
    """Ids of topics, by the names that the sequence uses. Old ids keep their names."""
    for name, topic_id in ids.items():
        memory.topic_ids[name] = topic_id
        memory.labels[topic_id] = name


def _learn_join(memory: Memory, actor: str, request: dict, answer: dict) -> None:
    membership = memory.of(actor)
    if answer["error_code"] in (25, 82, -1):  # the last where Kafka fails inside
        membership.unknown = True
    if answer["error_code"] not in (0, 79):
        return
    membership.unknown = False
    given = answer["member_id"]
    if is_anonymous(given):
        memory.labels.setdefault(given, _next(memory, "anonymous"))
        if answer["error_code"]:  # an id of its own is as good, and has a place among the others
            return
    elif given and given != request["member_id"]:
        memory.labels.setdefault(given, _next(memory, actor))
    membership.member_id = given
    if answer["error_code"] == 0:
        membership.generation = answer["generation_id"]
        membership.protocol = answer["protocol_name"]
        membership.leads = answer["leader"] == given
        membership.members = [one["member_id"] for one in answer["members"]]
        membership.says = [one["metadata"] for one in answer["members"]]


def _learn_sync(memory: Memory, actor: str, answer: dict) -> None:
    try:
        given = decode_assignment(answer["assignment"])
    except WireError:
        return
    memory.of(actor).read = {
        one.topic: sorted(one.partitions)
        for one in sorted(given.assigned_partitions, key=lambda one: one.topic)
    }


def is_anonymous(member_id: str) -> bool:
    """Whether a consumer group has made up this id: nothing but 128 bits by chance."""
    return len(member_id) == 22 and "." not in member_id and not member_id.startswith("c-")


def _learn_heartbeat(memory: Memory, actor: str, request: dict, answer: dict) -> None:
    membership = memory.of(actor)
    given = answer["member_id"]
    if given and given != request["member_id"]:
        memory.labels.setdefault(given, _next(memory, actor))
    if given:
        membership.member_id = given
    membership.epoch = max(answer["member_epoch"], 0)
    if request["member_epoch"] <= 0:
        membership.owned = {}
    if answer["assignment"] is not None:
        membership.owned = {
            one["topic_id"]: sorted(one["partitions"])
            for one in answer["assignment"]["topic_partitions"]
        }


def _next(memory: Memory, kind: str) -> str:
    taken = sum(1 for one in memory.labels.values() if one.startswith(f"{kind}."))
    return f"{kind}.{taken + 1}"
