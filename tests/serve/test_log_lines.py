# SPDX-License-Identifier: Apache-2.0
"""What clients make a broker write to its log is bounded, whatever they send."""

import re
import struct
from collections import Counter

import pytest
from tests.serve.talk import serving
from tests.waiting import eventually

from kohort.native.choice import CODEC
from kohort.server.log_lines import LINES_A_SECOND
from kohort.wire.apis import APIS
from kohort.wire.codec import encode
from kohort.wire.frames import RequestHeader, encode_request
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kohort.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.messages.offset_commit import OffsetCommitRequest

TIMES = 100
LONG = 32_000
QUICK = ("-X", "group.initial.rebalance.delay.ms=0", "-X", "max.partitions=60")
LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} ([A-Z]+) (.*)")


def sent(talk, request, version, client_id="x" * LONG):
    api = APIS[request.api_key]
    header = RequestHeader(
        request_api_key=api.key, request_api_version=version, correlation_id=1, client_id=client_id
    )
    data = encode_request(header, encode(request, version), flexible=api.flexible(version))
    talk.socket.sendall(data)
    return talk.answer()


def garbage(broker, number):
    with broker.talk() as talk:
        texts = [b"GET /" + b"x" * LONG, struct.pack(">ihhi", 9_000_000, 11, 5, 1), b"\0\0\0\4abcd"]
        talk.socket.sendall(texts[number % 3])
        assert talk.closed_by_peer()


def settings(broker, number):
    value = f"{number % 2 + 45}000"
    config = AlterableConfig(name="consumer.session.timeout.ms", config_operation=0, value=value)
    name = f"{number % 7}" * LONG
    resource = AlterConfigsResource(resource_type=32, resource_name=name, configs=[config])
    with broker.talk() as talk:
        sent(talk, IncrementalAlterConfigsRequest(resources=[resource]), 1)


def topics(broker, number):
    names = [MetadataRequestTopic(name=f"{n}-" + "t" * 200) for n in range(100)]
    with broker.talk() as talk:
        sent(talk, MetadataRequest(topics=names, allow_auto_topic_creation=True), 9)
    if number == TIMES - 1:
        eventually(lambda: "not made" in broker.errors, "topics that are not made are told of")


def groups(broker, number):
    join = JoinGroupRequest(
        group_id=f"{number}-" + "g" * LONG,
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        reason="r" * LONG,
    )
    leave = LeaveGroupRequest(
        group_id=join.group_id, members=[MemberIdentity(member_id="m" * LONG, reason="r" * LONG)]
    )
    with broker.talk() as talk:
        join.protocols[0].name = "range" + "x" * 1000
        sent(talk, join, 3)
        sent(talk, leave, 5)
        sent(talk, OffsetCommitRequest(group_id=join.group_id, topics=[]), 8)


CASES = [garbage, settings, topics, groups]
OF_GROUPS = [settings, groups]  # of changes of groups there may be more in a second


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_lines_are_bounded_in_length_and_in_number(case):
    with serving("--in-memory", "-X", "connections.max.idle.ms=2000", *QUICK) as broker:
        for number in range(TIMES):
            case(broker, number)
        assert broker.end() == 0
    assert broker.errors
    seconds: Counter[tuple[str, ...]] = Counter()
    for line in broker.errors.splitlines():
        assert len(line.encode()) <= 1024
        match = LINE.fullmatch(line)
        assert match, line
        if not match[3].startswith("left out") and case not in OF_GROUPS:
            seconds[match[1], match[2], *match[3].split()[:2]] += 1  # the words begin a kind
    assert max(seconds.values(), default=0) <= LINES_A_SECOND


def test_the_number_of_lines_that_were_left_out_is_told():
    with serving("--in-memory", "-X", "connections.max.idle.ms=2000") as broker:
        for _ in range(100):
            garbage(broker, 0)

        def all_told() -> bool:
            lines = broker.errors.splitlines()
            left_out = (
                re.search(r"left out (\d+) lines? like this one: connection", x) for x in lines
            )
            written = sum("INFO connection from" in line for line in lines)
            return written + sum(int(found[1]) for found in left_out if found) == 100

        eventually(all_told, "each connection that was closed has a line or is counted", 60)


def test_a_line_says_which_codec_is_used():
    with serving("--in-memory") as broker:
        assert broker.end() == 0
    assert f"INFO messages are read and written by the {CODEC} codec" in broker.errors
