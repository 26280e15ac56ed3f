# SPDX-License-Identifier: Apache-2.0
"""Plays a captured scenario against a `World` and compares every answer, field by field.

Ids that a broker makes (members, topics, producers, sessions) are known by two names, that of the
capture and that of this run; error texts and the order of hash maps are left out; `varies` masks
what two captures did not share.
"""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import google_crc32c
from tests.wire.layouts import OWN_TAGS, is_untold
from tests.wire.test_golden_frames import lowered
from tests.world import Client, World

from kohort.terms import uuid_bytes, uuid_text
from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.frames import RequestHeader, encode_request
from kohort.wire.schema import Field, Primitive, fields_of

TEXTS = {"errormessage"}
FLUID = {
    "finalizedfeaturesepoch",
    "finalizedfeatures",
    "supportedfeatures",
    "zkmigrationready",
    "documentation",
}
PLACES = {"host": "HOST", "port": 1, "clusterid": "CLUSTER", "clienthost": "CLIENT"}
IDENTITY = [
    "groupid",
    "name",
    "topicname",
    "topic",
    "topicid",
    "partitionindex",
    "partition",
    "index",
    "memberid",
    "key",
    "nodeid",
    "brokerid",
    "resourcename",
    "apikey",
    "groupinstanceid",
]
ANSWER_LIMIT_MS = 8000


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from leaves(one, f"{path}[{index}]")
    else:
        yield path, value


def steps(path: str) -> list[str]:
    return re.findall(r"[^.\[\]]+", path)


def at(value: Any, path: str) -> Any:
    for step in steps(path):
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def put(value: Any, path: str, new: Any) -> None:
    *way, last = steps(path)
    for step in way:
        value = value[int(step)] if isinstance(value, list) else value[step]
    value[int(last) if isinstance(value, list) else last] = new


def key_of(path: str) -> str:
    return steps(re.sub(r"\[\d*\]", "", path))[-1]


def build(cls: type[Any], given: dict[str, Any]) -> Any:
    """A message from the corpus's form: lowered names, ids as text, bytes as hex."""
    values = {}
    for field in fields_of(cls):
        name = field.name.replace("_", "")
        if name in given:
            value = given[name]
            if value is not None:
                value = [_one(field, one) for one in value] if field.array else _one(field, value)
            values[field.name] = value
    return cls(**values)


def _one(field: Field, value: Any) -> Any:
    if not isinstance(field.of, Primitive):
        return build(field.of, value)
    if field.of.name == "uuid":
        return uuid_bytes(value)
    return bytes.fromhex(value) if field.of.name in ("bytes", "records") else value


def plain(message: Any, version: int) -> dict[str, Any]:
    """A message in the corpus's form."""
    out = {}
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if version in field.versions and not is_untold(field, value):
            if field.array and value is not None:
                value = [_plain_one(field, one, version) for one in value]
            elif value is not None:
                value = _plain_one(field, value, version)
            out[field.name.replace("_", "")] = value
    return out


def _plain_one(field: Field, value: Any, version: int) -> Any:
    if not isinstance(field.of, Primitive):
        return plain(value, version)
    if field.of.name == "uuid":
        return uuid_text(value)
    return value.hex() if field.of.name in ("bytes", "records") else value


class RecordedScenario:
    """One scenario on its way through a world. `results` tells, per frame,
    `matched` or what differs.
    """

    def __init__(self, world: World, frames: list[dict[str, Any]]) -> None:
        self.world = world
        self.frames = frames
        self.results: dict[str, list[str]] = {}
        self.skipped: list[str] = []
        self.names: dict[Any, Any] = {}  # of the capture -> of this run
        self.back: dict[Any, Any] = {}
        self.producers: dict[int, int] = {}
        self.actual: dict[str, dict[str, Any]] = {}
        self.clients: dict[tuple[str, str | None], Client] = {}
        self.seen: dict[Client, int] = {}
        self.waiting: dict[Client, dict[int, dict[str, Any]]] = {}
        self.correlation = 0
        self.playing = 0
        self.mentioned = {
            value
            for frame in frames
            for _, value in leaves(frame["request"] or {})
            if isinstance(value, str)
        } - {
            frame["request"]["GroupId"]
            for frame in frames
            if not self.offered(frame) and "GroupId" in frame["request"]
        }

    def play(self) -> None:
        due: list[dict[str, Any]] = []
        for frame in self.frames:
            if frame["pause_ms"]:
                self.world.advance(frame["pause_ms"])
            self.collect()
            before = [one for one in due if (one["answered_after"] or one["seq"]) < frame["seq"]]
            self.wait_for(before)
            if not self.offered(frame):
                self.skipped.append(frame["name"])
                continue
            self.playing = frame["seq"]
            self.send(frame)
            if frame["answered"]:
                due.append(frame)
                if (frame["answered_after"] or frame["seq"]) <= frame["seq"]:
                    self.wait_for([frame])
        self.wait_for(due)
        self.judge()

    def offered(self, frame: dict[str, Any]) -> bool:
        api = APIS.get(frame["api_key"])
        return api is not None and (frame["version"] in api.versions or api.name == "ApiVersions")

    # --- sending

    def send(self, frame: dict[str, Any]) -> None:
        key = (frame["conn"], frame["client_id"])
        client = self.clients.get(key)
        if client is None or client.closed:
            client = self.clients[key] = self.world.connect()
        self.correlation += 1
        self.waiting.setdefault(client, {})[self.correlation] = frame
        api, version = APIS[frame["api_key"]], frame["version"]
        if version not in api.request.versions:
            raw = bytes.fromhex(frame["request_hex"])
            body = raw[:4] + self.correlation.to_bytes(4, "big") + raw[8:]
            client.send(len(body).to_bytes(4, "big") + body)
        else:
            header = RequestHeader(
                request_api_key=api.key,
                request_api_version=version,
                correlation_id=self.correlation,
                client_id=frame["client_id"],
            )
            request = build(api.request, self.request(frame))
            body = codec.encode(request, version)
            client.send(encode_request(header, body, flexible=api.flexible(version)))
        self.collect()

    def request(self, frame: dict[str, Any]) -> dict[str, Any]:
        request: dict[str, Any] = deepcopy(lowered(frame["request"]))
        for path, source in (frame.get("request_vars") or {}).items():
            where = path.lower()
            known = at(request, where)
            if key_of(where) == "producerid" and known in self.producers:
                put(request, where, self.producers[known])
            elif known in self.names:
                put(request, where, self.names[known])
            else:
                name, _, answer = source.partition("#")
                value = at(self.actual.get(name) or {}, answer.lower())
                if value is not None:
                    put(request, where, value)
        for path, value in list(leaves(request)):
            if isinstance(value, str):
                if key_of(path) == "records" and value:
                    put(request, path, batch_of_this_run(value, self.producers))
                elif value in self.names and len(value) > 8:
                    put(request, path, self.names[value])
        return request

    # --- receiving

    def collect(self) -> None:
        for client in self.clients.values():
            start = self.seen.get(client, 0)
            for data in client.answers[start:]:
                correlation = int.from_bytes(data[:4], "big")
                frame = self.waiting[client].pop(correlation, None)
                if frame is not None:
                    self.receive(frame, data)
            self.seen[client] = len(client.answers)
            if client.closed:
                for frame in self.waiting[client].values():
                    self.results.setdefault(frame["name"], ["the connection was closed"])
                self.waiting[client].clear()

    def receive(self, frame: dict[str, Any], data: bytes) -> None:
        if not frame["answered"]:
            if self.playing != self.frames[-1]["seq"]:  # after it the capture no longer listened
                self.results[frame["name"]] = ["answered, upstream does not"]
            return
        api, version = APIS[frame["api_key"]], frame["version"]
        if api.name == "ApiVersions" and lowered(frame["response"])["errorcode"] == 35:
            version = 0
        start = 5 if api.flexible(version) and api.name != "ApiVersions" else 4
        answer = plain(codec.decode(api.response, version, data, start), version)
        self.actual[frame["name"]] = answer
        self.learn(frame, lowered(frame["response"]), answer)

    def learn(self, frame: dict[str, Any], theirs: dict[str, Any], ours: dict[str, Any]) -> None:
        """Which id of ours stands for which of theirs."""
        api = frame["api"]
        if api in ("JoinGroup", "ConsumerGroupHeartbeat"):
            if lowered(frame["request"]).get("memberid") != theirs.get("memberid"):
                self.same(theirs.get("memberid"), ours.get("memberid"))
        elif api == "InitProducerId" and theirs["producerid"] >= 0 and ours["producerid"] >= 0:
            self.producers.setdefault(theirs["producerid"], ours["producerid"])
        elif api == "Fetch" and theirs.get("sessionid"):
            self.same(theirs["sessionid"], ours.get("sessionid"))
        if api in ("CreateTopics", "Metadata", "DescribeTopicPartitions"):
            here = {one.get("name"): one.get("topicid") for one in ours["topics"]}
            for one in theirs["topics"]:
                if one.get("name") and set(one.get("topicid") or "A") != {"A"}:
                    self.same(one["topicid"], here.get(one["name"]))

    def same(self, theirs: Any, ours: Any) -> None:
        if (
            theirs
            and ours
            and set(str(ours)) != {"A"}
            and theirs not in self.names
            and ours not in self.back
        ):
            self.names[theirs] = ours
            self.back[ours] = theirs

    def wait_for(self, frames: list[dict[str, Any]]) -> None:
        def done() -> bool:
            self.collect()
            return all(one["name"] in self.actual or one["name"] in self.results for one in frames)

        if not done():
            self.world.advance(ANSWER_LIMIT_MS, until=done)
        for frame in frames:
            if frame["name"] not in self.actual:
                self.results.setdefault(frame["name"], ["no answer came"])

    # --- comparing

    def judge(self) -> None:
        for frame in self.frames:
            name = frame["name"]
            if name in self.skipped or name in self.results:
                continue
            if name not in self.actual:
                self.results[name] = []
                continue
            theirs = self.canonical(lowered(frame["response"]), "", golden=True)
            ours = self.canonical(self.actual[name], "", golden=False)
            differences: list[str] = []
            self.compare(
                ordered(self.scoped(frame, theirs)),
                ordered(self.scoped(frame, ours)),
                "",
                {path.lower() for path in frame["varies"]},
                differences,
            )
            self.results[name] = differences

    def canonical(self, value: Any, key: str, *, golden: bool) -> Any:
        if isinstance(value, dict):
            refused = bool(value.get("errorcode"))  # it has no producer, but a number for none
            return {
                name: self.canonical(one, name, golden=golden or (name == "producerid" and refused))
                for name, one in value.items()
                if name not in TEXTS and name not in FLUID
            }
        if isinstance(value, list):
            return [self.canonical(one, key, golden=golden) for one in value]
        if key in PLACES and value and value != -1:
            return PLACES[key]
        if key == "records" and isinstance(value, str):
            return without_producers(value)
        if golden:
            return value
        if key == "producerid":
            return next((one for one, here in self.producers.items() if here == value), value)
        return (
            self.back.get(value, value) if isinstance(value, str) or key == "sessionid" else value
        )

    def scoped(self, frame: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        """Lists over everything in the broker: only what this scenario speaks of."""
        if frame["api"] == "ListGroups":
            answer["groups"] = [one for one in answer["groups"] if one["groupid"] in self.mentioned]
        elif frame["api"] == "Metadata" and not lowered(frame["request"]).get("topics"):
            answer["topics"] = [one for one in answer["topics"] if one["name"] in self.asked()]
        elif frame["api"] == "ApiVersions":
            common = [key for key in APIS if key < OWN_TAGS]
            answer["apikeys"] = [one for one in answer["apikeys"] if one["apikey"] in common]
        return answer

    def asked(self) -> set[str]:
        return {
            one["name"]
            for frame in self.frames
            if frame["api"] == "CreateTopics"
            for one in lowered(frame["request"])["topics"]
        }

    def compare(self, theirs: Any, ours: Any, path: str, varies: set[str], out: list[str]) -> None:
        if path in varies and not isinstance(theirs, dict | list):
            return
        if type(theirs) is not type(ours):
            out.append(told(path, theirs, ours))
        elif isinstance(theirs, dict):
            for key in theirs:
                self.compare(
                    theirs[key], ours.get(key), f"{path}.{key}" if path else key, varies, out
                )
        elif isinstance(theirs, list):
            inner = path + "[]"
            if len(theirs) != len(ours):
                if inner not in varies:
                    out.append(told(inner, theirs, ours))
                return
            if inner in varies and theirs and not isinstance(theirs[0], dict | list):
                return
            for one, other in zip(theirs, ours, strict=True):
                self.compare(one, other, inner, varies, out)
        elif theirs != ours and path + "[]" not in varies and not _masked(path, varies):
            out.append(told(path, theirs, ours))


def _masked(path: str, varies: set[str]) -> bool:
    return any(path.startswith(one[:-2]) for one in varies if one.endswith("[]"))


def told(path: str, theirs: Any, ours: Any) -> str:
    """A difference, short enough to read."""
    return f"{path}: upstream {repr(theirs)[:200]}, here {repr(ours)[:200]}"


def ordered(value: Any) -> Any:
    """Lists in an order that does not depend on hash maps."""
    if isinstance(value, dict):
        return {key: ordered(one) for key, one in value.items()}
    if isinstance(value, list):
        items = [ordered(one) for one in value]
        if items and isinstance(items[0], dict):
            return sorted(items, key=lambda one: (_identity(one), json.dumps(one, sort_keys=True)))
        return sorted(items, key=json.dumps)
    return value


def _identity(one: dict[str, Any]) -> str:
    return json.dumps([one[key] for key in IDENTITY if not isinstance(one.get(key, []), list)])


def _batches(data: bytes) -> Iterator[tuple[int, int]]:
    position = 0
    while position + 61 <= len(data):
        size = int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
        if size < 49 or position + 12 + size > len(data) or data[position + 16] != 2:
            return
        yield position, position + 12 + size
        position += 12 + size


def batch_of_this_run(records: str, producers: dict[int, int]) -> str:
    """Batches with the producer ids of this run; a checksum is made anew only
    where it was right.
    """
    data = bytearray.fromhex(records)
    for start, end in _batches(bytes(data)):
        producer = int.from_bytes(data[start + 43 : start + 51], "big", signed=True)
        known = int.from_bytes(data[start + 17 : start + 21], "big")
        if producers.get(producer, producer) != producer and known == google_crc32c.value(
            bytes(data[start + 21 : end])
        ):
            data[start + 43 : start + 51] = producers[producer].to_bytes(8, "big")
            data[start + 17 : start + 21] = google_crc32c.value(
                bytes(data[start + 21 : end])
            ).to_bytes(4, "big")
    return data.hex()


def without_producers(records: str) -> str:
    """Whole batches without producer ids. Upstream cuts the last one wherever the limit falls."""
    data = bytearray.fromhex(records)
    end = 0
    for start, stop in _batches(bytes(data)):
        end = stop
        if data[start + 43] < 128:
            data[start + 43 : start + 51] = bytes(8)
            data[start + 17 : start + 21] = bytes(4)
    return data[:end].hex()
