# SPDX-License-Identifier: Apache-2.0
"""A broker with the topics, groups and transactions of the recorded requests about rights, which
are asked under many sets of rules.

What a request has changed is put back before the next one, as it was when Apache Kafka was asked.
"""

import json
from collections.abc import Iterable
from typing import Any

import google_crc32c
from msgspec.structs import replace
from tests.replay.player import build, ordered, plain
from tests.server.desk import Desk
from tests.wire.test_golden_frames import lowered

from kohort.config import STANDARD_AUTHORIZER
from kohort.errors import ErrorCode
from kohort.terms import uuid_text
from kohort.wire.apis import APIS
from kohort.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kohort.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kohort.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kohort.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kohort.wire.messages.delete_groups import DeleteGroupsRequest
from kohort.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kohort.wire.messages.find_coordinator import FindCoordinatorRequest
from kohort.wire.messages.init_producer_id import InitProducerIdRequest
from kohort.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

ADMIN, ASKING = 0, 1  # connections
_TRANSACTIONAL = 1 << 4  # of the attributes of a batch
TOPICS = {
    "a1": "4t58O-a_SAqNNxeew1hYqQ",
    "b1": "qPvEOhJqTpO9z0trTb5NzA",
    "del-a": "Wmp14iNUQsClcJfaHphtrQ",
    "del-b": "Krr5DrtLT96kUehJnTC5nA",
}
"""The topics, with the ids that they had when they were recorded."""

PRODUCERS = {"xa": 0, "xb": 1, "xo": 2, "xp": 3}
"""The transactional ids, with their recorded producer ids."""

OFFSETS = ("ga", "gb")
MEMBERS = {"ka": ["a1", "b1"], "kb": ["b1"], "kc": ["a1"]}
NO_ID = "A" * 22
HIDDEN = "*"
MASKED = {
    *(
        "producerid",
        "producerepoch",
        "memberid",
        "clientid",
        "sessionid",
        "leader",
        "throttletimems",
        "clusterid",
    ),
    *("baseoffset", "logstartoffset", "highwatermark", "laststableoffset", "offset", "endoffset"),
    *("lowwatermark", "committedoffset", "lasttimestamp", "lastsequence", "coordinatorepoch"),
    *("transactionstarttimems", "transactionstartoffset", "timestamp", "logappendtimems"),
    *("partitionsize", "offsetlag", "totalbytes", "usablebytes", "logdir", "throttletimems"),
    *("currenttxnstartoffset",),
    *("records", "port", "startoffset", "leaderepoch", "partitionleaderepoch"),
}
"""What differs from run to run, and has nothing to do with rights."""


UNTOLD = {"currentleader", "divergingepoch", "snapshotid", "nodeendpoints"}
"""Tagged fields, which are not sent with their defaults."""


class AccessWorld:
    """The broker, with a connection of `User:admin`, the super user, and one of who asks."""

    def __init__(self) -> None:
        self.desk = Desk(
            node_id="1",
            authorizer_class_name=STANDARD_AUTHORIZER,
            super_users="User:admin",
            auto_create_topics_enable="true",
            log_retention_ms="-1",
            transaction_max_timeout_ms="3600000",
            group_consumer_session_timeout_ms="3600000",
            group_consumer_max_session_timeout_ms="3600000",
            group_consumer_heartbeat_interval_ms="500",
            group_consumer_min_heartbeat_interval_ms="500",
        )
        self.desk.another()
        self.become("User:admin", ADMIN)
        self.ids: dict[str, str] = {}
        self.producers: dict[str, tuple[int, int]] = {}
        for name in ("a1", "b1"):
            self._create(name)
            for partition in range(2):
                self.desk.produce(name, partition)
        self._restore_topics()
        self._restore_offsets()
        for group, names in MEMBERS.items():
            self._join(group, names)
        self.desk.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["xa"]), 4)
        for name in PRODUCERS:
            self._init(name)
        for name in ("xo", "xp"):
            self._open(name)

    def become(self, principal: str, node: int = ASKING) -> None:
        connection = self.desk.connections[node]
        connection.client = replace(connection.client, principal=principal)

    def set_rules(self, rules: Iterable[dict[str, Any]]) -> None:
        """From now on exactly these, in the form of the corpus."""
        self.desk.ask(DeleteAclsRequest(filters=[of_principal(None)]), 3)
        creations = [build(AclCreation, lowered(rule)) for rule in rules]
        for result in self.desk.ask(CreateAclsRequest(creations=creations), 3).results:
            assert result.error_code == 0, result

    def ask(self, line: dict[str, Any]) -> Any:
        """The answer to a recorded request, in the form of the corpus."""
        api = next(api for api in APIS.values() if api.name == line["api"])
        request = build(api.request, self._of_this_run(lowered(line["request"])))
        asked = self.desk.send(request, line["version"], node=ASKING)
        self.desk.settle()
        if asked.answer is None:
            self.desk.wait(10_000)
        if asked.answer is None:
            return None
        answer = plain(asked.answer, line["version"])
        self._put_back(line["api"])
        return answer

    def _of_this_run(self, request: Any, transactional_id: str = "xa") -> Any:
        if isinstance(request, list):
            return [self._of_this_run(one, transactional_id) for one in request]
        if not isinstance(request, dict):
            return request
        own = request.get("transactionalid") or transactional_id
        names = {recorded: name for name, recorded in TOPICS.items()}
        out = {}
        for key, value in request.items():
            if key == "topicid" and value in names:
                out[key] = self.ids[names[value]]
            elif key.endswith("producerid") and value in PRODUCERS.values():
                out[key] = self.producers[own][0]
            elif key.endswith("producerepoch") and value == 0:
                out[key] = self.producers[own][1]
            elif key == "records" and value:
                out[key] = self._batch(value)
            else:
                out[key] = self._of_this_run(value, own)
        return out

    def _batch(self, records: str) -> str:
        """A batch with the producer of this run, if it is in a transaction."""
        batch = bytearray.fromhex(records)
        if batch[22] & _TRANSACTIONAL:
            producer_id, epoch = self.producers["xa"]
            batch[43:53] = producer_id.to_bytes(8) + epoch.to_bytes(2)
            batch[17:21] = google_crc32c.value(bytes(batch[21:])).to_bytes(4)
        return batch.hex()

    # --- as it was

    def _put_back(self, api: str) -> None:
        match api:
            case "CreateTopics" | "DeleteTopics" | "Metadata" | "CreatePartitions":
                self._restore_topics()
            case "OffsetCommit" | "OffsetDelete" | "DeleteGroups" | "TxnOffsetCommit":
                self._restore_offsets()
            case "ConsumerGroupHeartbeat":
                self._leave("gn")
            case "CreateAcls" | "DeleteAcls":
                self.desk.ask(DeleteAclsRequest(filters=[of_principal("User:zed")]), 3)
        if api in (
            "InitProducerId",
            "AddPartitionsToTxn",
            "AddOffsetsToTxn",
            "EndTxn",
            "TxnOffsetCommit",
            "Produce",
        ):
            self._init("xa")

    def _create(self, name: str) -> None:
        self.ids[name] = uuid_text(self.desk.create(name, 2))

    def _restore_topics(self) -> None:
        known = self.desk.cluster.catalog.by_name
        gone = [name for name in known if name.startswith(("new-", "auto-", "zz"))]
        if gone:
            topics = [DeleteTopicState(name=name) for name in gone]
            self.desk.ask(DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6)
        for name in TOPICS:
            if name not in known:
                self._create(name)

    def _restore_offsets(self) -> None:
        partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
        topics = [
            OffsetCommitRequestTopic(name=name, partitions=partitions) for name in ("a1", "b1")
        ]
        for group in OFFSETS:
            self.desk.ask(OffsetCommitRequest(group_id=group, topics=topics), 9)

    def _join(self, group: str, names: list[str]) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=f"of-{group}",
            member_epoch=0,
            rebalance_timeout_ms=600_000,
            subscribed_topic_names=names,
            topic_partitions=[],
        )
        assert self.desk.ask(request, 1).error_code == 0

    def _leave(self, group: str) -> None:
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id="m", member_epoch=-1)
        self.desk.ask(request, 1)
        self.desk.ask(DeleteGroupsRequest(groups_names=[group]), 2)

    def _init(self, name: str) -> None:
        """Its transaction, if it has one, is ended before."""
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=3_600_000)
        answer = self.desk.ask(request, 4)
        while answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
            answer = self.desk.ask(request, 4)
        assert answer.error_code == 0
        self.producers[name] = answer.producer_id, answer.producer_epoch

    def _open(self, name: str) -> None:
        producer_id, epoch = self.producers[name]
        topics = [AddPartitionsToTxnTopic(name=topic, partitions=[1]) for topic in ("a1", "b1")]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        )
        self.desk.ask(request, 3)


def of_principal(principal: str | None) -> DeleteAclsFilter:
    """A filter that finds all rules about a principal, or about anybody."""
    return DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=principal,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def comparable(answer: Any) -> str:
    """An answer without what differs from run to run, its lists in a fixed order."""
    return json.dumps(ordered(_masked(answer)), sort_keys=True)


def _masked(value: Any, key: str = "", *, no_right: bool = False) -> Any:
    if isinstance(value, dict):
        # Upstream's text is at times a dump of the whole request.
        no_right = value.get("errorcode") == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return {
            name: _masked(one, name, no_right=no_right)
            for name, one in value.items()
            if name not in UNTOLD and (name, one) != ("topicconfigerrorcode", 0)
        }
    if isinstance(value, list):
        return [_masked(one, key) for one in value]
    if key in ("topicid", "directory") and value != NO_ID:
        return HIDDEN
    return HIDDEN if key in MASKED or (key == "errormessage" and no_right) else value
