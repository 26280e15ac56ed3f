# SPDX-License-Identifier: Apache-2.0
"""Byte streams that no client should send: answered, closed or silent, as a real broker does."""

import pytest
from tests.golden import frames
from tests.world import World

# APIs that this broker does not offer end the connection, as every unknown API does.
NOT_OFFERED = {
    "api-telemetry-not-offered": "telemetry is not offered; upstream answers it all the same",
}


@pytest.mark.parametrize("frame", frames("malformed"), ids=lambda frame: frame["name"])
def test_a_malformed_stream_ends_as_it_does_upstream(frame):
    """K709-10: And the broker goes on to serve others."""
    world = World({})
    client, other = world.connect(), world.connect()

    data = bytes.fromhex(frame["sent_hex"])
    step = 1 if frame["name"] == "byte-by-byte" else len(data)
    for start in range(0, len(data), step):
        client.send(data[start : start + step])

    if frame["name"] in NOT_OFFERED:
        assert client.closed
    else:
        assert client.closed == frame["closed"]
        assert len(client.answers) == len(frame["answers_hex"])
    good = next(one for one in frames("malformed") if one["name"] == "good")
    other.send(bytes.fromhex(good["sent_hex"]))
    assert len(other.answers) == 1
