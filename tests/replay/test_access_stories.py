# SPDX-License-Identifier: Apache-2.0
"""What happens when rules change under members, fetches and transactions, as it went in Apache
Kafka 4.3.1.
"""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.golden import access
from tests.replay.access_world import NO_ID, comparable, of_principal
from tests.replay.player import at, batch_of_this_run, build, leaves, plain
from tests.server.desk import Desk
from tests.wire.test_golden_frames import lowered

from kohort.config import STANDARD_AUTHORIZER
from kohort.terms import uuid_text
from kohort.wire.apis import APIS
from kohort.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kohort.wire.messages.delete_acls import DeleteAclsRequest
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest

BY_NAME = {api.name: api for api in APIS.values()}
TOPICS = {"n1": 2, "c": 2, "d": 2, "f1": 1, "f2": 1, "h1": 1, "x1": 1, "x2": 1}
OTHERWISE = {
    "created_and_seen": "how long a change takes: here it counts before it is answered",
    "regex_of_two": "tests/coordinator/consumer/test_rights.py: each reads what it may",
}
DIFFERENT = {
    ("fetch_in_a_session", "waits for records"): "a fetch that waits is judged when it is answered",
    ("leave_with_forbidden_names", "gone"): "an emptied group gets a new target (KAFKA-20442)",
    ("scram_credentials", "empty salted password"): "refused with a reason, and not with -1",
}
"""Steps that go another way here, on purpose: docs/skipped.md."""

STORIES: dict[str, list[dict[str, Any]]] = {}
for line in access("stories"):
    if line["story"] not in OTHERWISE:
        STORIES.setdefault(line["story"], []).append(line)


_SAYS_NOTHING = {
    "GroupId": "rg",
    "MemberId": "m1",
    "RebalanceTimeoutMs": -1,
    "SubscribedTopicNames": None,
    "TopicPartitions": None,
}


class Story(Desk):
    """A broker to which one story happens."""

    def __init__(self, name: str, steps: list[dict[str, Any]]) -> None:
        authorizer = "" if name == "no_authorizer" else STANDARD_AUTHORIZER
        super().__init__(
            node_id="1",
            authorizer_class_name=authorizer,
            super_users="User:admin",
            group_min_session_timeout_ms="1",
            group_initial_rebalance_delay_ms="0",
            group_consumer_heartbeat_interval_ms="500",
            group_consumer_min_heartbeat_interval_ms="500",
        )
        self.steps = steps
        self.epoch = 0  # that the last heartbeat was answered with
        self.people = {"": 0}  # connections by name
        self.same: dict[Any, Any] = {}  # ids of the recording, and ours
        self.parked: dict[str, Any] = {}
        self._become(0, "User:admin")
        for topic, partitions in TOPICS.items():
            self.create(topic, partitions)
        for topic in ("f1", "f2"):
            self.produce(topic)
        self.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"]), 4)
        for step in steps:
            for path, recorded in leaves(step.get("response") or {}):
                if path.endswith("TopicId") and recorded != NO_ID:
                    self._learn_topic(step["response"], path, recorded)

    def _become(self, connection: int, principal: str) -> None:
        known = self.connections[connection]
        known.client = replace(known.client, principal=principal)

    def _learn_topic(self, response: Any, path: str, recorded: str) -> None:
        """Which topic of ours has the place of one of the recording."""
        place = at(response, path.rpartition(".")[0])
        name = place.get("TopicName") or place.get("Name")
        if name in self.cluster.catalog.by_name:
            self.same[recorded] = uuid_text(self.cluster.catalog.by_name[name].topic_id)

    def play(self) -> dict[str, tuple[Any, Any]]:
        """What has gone another way, by the label of the step: ours and theirs."""
        wrong = {}
        for number, step in enumerate(self.steps):
            outcome = self.take_step(step)
            if outcome is not None and outcome[0] != outcome[1]:
                wrong[step.get("label") or f"step {number}"] = outcome
        return wrong

    def take_step(self, step: dict[str, Any]) -> tuple[Any, Any] | None:
        match step["action"]:
            case "rules":
                self._set_rules(step["acls"])
            case "topic":
                self.same[step["id"]] = uuid_text(self.create(step["name"], 2))
            case "pause":
                self.wait(step["ms"])
            case "send":
                self.parked[step["label"]] = self._send(step)
            case "answer":
                self.produce(node=0, topic="f1")
                asked = self.parked[step["label"]]
                return self._compared(step, asked.answer)
            case "request":
                return self._request(step)
            case "seen":
                return self._seen(step)
        return None

    def _set_rules(self, acls: list[dict[str, Any]]) -> None:
        self.ask(DeleteAclsRequest(filters=[of_principal(None)]), 3)
        creations = [build(AclCreation, lowered(acl)) for acl in acls]
        self.ask(CreateAclsRequest(creations=creations), 3)

    def _send(self, step: dict[str, Any]) -> Any:
        name = step.get("conn") or ""
        if name not in self.people or self.connections[self.people[name]].finished:
            self.another()
            self.people[name] = len(self.clients) - 1
        self._become(self.people[name], step.get("principal") or "User:admin")
        request = build(BY_NAME[step["api"]].request, self._ours(lowered(step["request"])))
        return self.send(request, step["version"], node=self.people[name])

    def _ours(self, request: Any) -> Any:
        if isinstance(request, list):
            return [self._ours(one) for one in request]
        if isinstance(request, dict):
            return {key: self._ours_of(key, value) for key, value in request.items()}
        return self.same.get(request, request) if isinstance(request, str) else request

    def _ours_of(self, key: str, value: Any) -> Any:
        if key.endswith(("producerid", "sessionid")):
            return self.same.get((key[-10:], value), value)
        if key == "records" and value:
            ids = {one[1]: ours for one, ours in self.same.items() if one[0] == "producerid"}
            return batch_of_this_run(value, ids)
        return self._ours(value)

    def _request(self, step: dict[str, Any]) -> tuple[Any, Any]:
        asked = self._send(step)
        self.settle()
        if asked.answer is None:
            self.wait(5000)
        if step.get("outcome") == "closed":
            return self.connections[self.people[step["conn"]]].finished, True
        return self._compared(step, asked.answer)

    def _compared(self, step: dict[str, Any], answer: Any) -> tuple[Any, Any]:
        if answer is None:
            return None, step["response"]
        theirs, ours = lowered(step["response"]), plain(answer, step["version"])
        self.epoch = ours.get("memberepoch") or self.epoch
        for key in ("memberid", "sessionid", "producerid"):
            if theirs.get(key) not in (None, "", 0, -1):
                known = theirs[key] if key == "memberid" else (key[-10:], theirs[key])
                self.same.setdefault(known, ours.get(key))
        return comparable(ours), comparable(theirs)

    def _seen(self, step: dict[str, Any]) -> tuple[Any, Any]:
        """A heartbeat soon gets that answer."""
        earlier = self.steps[: self.steps.index(step)]
        join = next(one for one in earlier if one["action"] == "request")
        outcome: tuple[Any, Any] = (None, step["response"])
        for _ in range(5):
            self.wait(500)
            asked = self._send({**join, "request": {**_SAYS_NOTHING, "MemberEpoch": self.epoch}})
            self.settle()
            outcome = self._compared(step | {"version": join["version"]}, asked.answer)
            if outcome[0] == outcome[1]:
                break
        return outcome


@pytest.mark.parametrize("name", STORIES)
def test_a_story_goes_as_it_went(name):
    """SEC-63, SEC-66 to SEC-69, SEC-80, SEC-81."""
    wrong = Story(name, STORIES[name]).play()

    expected = {label for story, label in DIFFERENT if story == name}
    assert {label: wrong[label] for label in wrong.keys() - expected} == {}
    assert expected <= wrong.keys()
