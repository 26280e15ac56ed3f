# SPDX-License-Identifier: Apache-2.0
"""The shares of file descriptors."""

import os
import resource

import pytest
from tests.server.desk import Desk

from kohort.errors import ErrorCode, KohortError
from kohort.server.descriptors import Limit, coordinator_logs, open_file_limit, share_out
from kohort.sim.disk import SimulatedFiles
from kohort.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

MANY = 2**31 - 1


@pytest.mark.parametrize(
    ("limit", "coordinators", "max_connections", "expected"),
    [
        (Limit(1000, 12), 54, MANY, (62, 654, 218)),
        (Limit(1024, 20), 100, MANY, (64, 630, 210)),
        (Limit(20_000, 15), 54, MANY, (1024, 14181, 4726)),
        (Limit(100_000, 15), 54, MANY, (1024, 74181, 24726)),
        (Limit(1000, 12), 54, 100, (62, 100, 772)),  # logs have what connections leave
        (Limit(1000, 12), 54, 0, (62, 0, 872)),
        (Limit(60, 12), 4, MANY, (32, 8, 4)),  # the least with which a broker starts
        (Limit(), 54, MANY, (1024, 805305560, 268435186)),
    ],
)
def test_what_is_left_is_shared(limit, coordinators, max_connections, expected):
    shares = share_out(limit, coordinators, max_connections, on_disk=True)
    assert (shares.reserve, shares.connections, shares.log_files) == expected
    assert shares.missing == 0


@pytest.mark.parametrize("limit", [*range(0, 200, 7), 256, 1000, 4096, 100_000])
@pytest.mark.parametrize("coordinators", [0, 1, 54, 100])
@pytest.mark.parametrize("max_connections", [0, 1, 5, 100, MANY])
@pytest.mark.parametrize("on_disk", [False, True])
def test_shares_are_never_more_than_there_is(limit, coordinators, max_connections, on_disk):
    shares = share_out(Limit(limit, 10), coordinators, max_connections, on_disk=on_disk)
    given = 10 + coordinators + shares.reserve + shares.connections + shares.log_files
    assert shares.connections <= max_connections
    assert given <= limit + shares.missing
    if not shares.missing:
        assert shares.connections >= min(8, max_connections)
        assert shares.log_files >= 4 or not on_disk
    enough = Limit(limit + shares.missing, 10)
    again = share_out(enough, coordinators, max_connections, on_disk=on_disk)
    assert again.missing <= again.reserve - shares.reserve


def test_a_broker_in_memory_has_no_files_of_logs():
    shares = share_out(Limit(1000, 12), 0, MANY, on_disk=False)
    assert (shares.log_files, shares.connections) == (0, 926)


def test_the_limit_is_that_of_this_process():
    before = open_file_limit()
    assert before.most == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    assert open_file_limit().in_use == before.in_use + 5
    for one in held:
        os.close(one)


def test_a_broker_without_enough_says_what_it_needs_and_leaves_the_directory(tmp_path):
    files = SimulatedFiles()
    with pytest.raises(KohortError, match=r"is 70 \(`ulimit -n`\), expected at least 103: 9 are "):
        Desk(files=files, limit=Limit(70, 9), offsets_topic_num_partitions="50")
    desk = Desk(files=files, limit=Limit(200, 9), offsets_topic_num_partitions="50")
    assert coordinator_logs(desk.cluster.catalog.by_name.values()) == 50


def test_logs_of_coordinators_are_refused_where_there_are_too_few_and_others_are_not():
    desk = Desk(files=SimulatedFiles(), limit=Limit(100, 10))
    many = desk.cluster.shares
    for name, code in (
        ("__transaction_state", ErrorCode.INVALID_PARTITIONS),
        ("orders", ErrorCode.NONE),
    ):
        for validate_only in (True, False):
            wanted = CreatableTopic(name=name, num_partitions=60, replication_factor=1)
            request = CreateTopicsRequest(
                topics=[wanted], timeout_ms=1000, validate_only=validate_only
            )
            (topic,) = desk.ask(request, 7).topics
            assert topic.error_code == code
            if code:
                assert topic.error_message.startswith(
                    "The 60 logs of __transaction_state would always be open: the limit of open "
                    "files is 100 (`ulimit -n`), expected at least "
                )
    assert desk.cluster.shares == many
    assert desk.cluster.logs.open_files.count <= many.log_files


def test_logs_of_transactions_take_their_share_from_the_others():
    desk = Desk(files=SimulatedFiles(), limit=Limit(200, 10))
    before = desk.cluster.shares
    wanted = CreatableTopic(name="__transaction_state", num_partitions=60, replication_factor=1)
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=1000)
    assert desk.ask(request, 7).topics[0].error_code == 0
    after = desk.cluster.shares
    assert after.coordinators == before.coordinators + 60
    assert after.log_files < before.log_files
    pool = desk.cluster.logs.open_files
    assert (pool.share, pool.pinned) == (after.log_files, after.coordinators)
