# SPDX-License-Identifier: Apache-2.0
"""The payloads of classic consumers, as the coordinator reads and writes them."""

import pytest
from tests.coordinator.desk import topic_id, topics
from tests.coordinator.mixed import payload, subscribed, unpacked

from kohort.coordinator.consumer import embedded
from kohort.errors import WireError

KNOWN = topics(orders=4, payments=2)


def test_a_subscription_is_what_is_said_to_the_assignor_liked_best():
    said = embedded.subscription({"range": subscribed("a"), "roundrobin": subscribed("b")})
    assert said.topics == ["a"]


@pytest.mark.parametrize("protocols", [{}, {"range": b""}, {"range": b"\xff\xff"}])
def test_bytes_that_are_no_subscription_are_refused(protocols):
    with pytest.raises(WireError):
        embedded.subscription(protocols)


def test_partitions_are_those_that_exist_ascending_and_once():
    named = payload({"orders": [3, 1, 1, 4, -1], "nowhere": [0], "payments": [2]})
    assert embedded.partitions(named, KNOWN) == {topic_id("orders"): (1, 3)}


@pytest.mark.parametrize(("said", "version"), [(0, 0), (1, 1), (3, 3), (9, 3), (-1, 0)])
def test_an_assignment_has_the_version_of_the_subscription(said, version):
    given = {topic_id("orders"): (0, 2), topic_id("gone"): (1,)}
    data = embedded.assignment(given, said.to_bytes(2, signed=True), KNOWN)
    assert int.from_bytes(data[:2]) == version
    assert unpacked(data) == {"orders": [0, 2]}
