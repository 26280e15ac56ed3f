# SPDX-License-Identifier: Apache-2.0
"""What a classic member says that it reads."""

import pytest
from tests.coordinator.classics import SUBSCRIBED

from kohort.coordinator.classic.member import subscribed_topics
from kohort.records.consumer_protocol import ConsumerProtocolSubscription, encode


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param(SUBSCRIBED, ["orders"], id="v3"),
        pytest.param(b"\0\0" + SUBSCRIBED[2:], ["orders"], id="v0 with bytes behind it"),
        pytest.param(b"\0\x63" + SUBSCRIBED[2:], ["orders"], id="v99"),
        pytest.param(
            encode(ConsumerProtocolSubscription(topics=[], owned_partitions=[])), [], id="none"
        ),
        pytest.param(b"", None, id="nothing"),
        pytest.param(b"\0", None, id="half a version"),
        pytest.param(b"\xff\xff junk", None, id="negative version"),
        pytest.param(b"\0\0\xff\xff\xff\xff", None, id="negative length"),
        pytest.param(b"\0\0\x7f\xff\xff\xff", None, id="a length beyond the bytes"),
        pytest.param(SUBSCRIBED[:9], None, id="cut"),
    ],
)
def test_subscribed_topics(metadata, expected):
    assert subscribed_topics(metadata) == expected
