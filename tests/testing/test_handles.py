# SPDX-License-Identifier: Apache-2.0
"""The clock and the nodes of a broker, as a test holds them."""

import pytest
from tests.serve.talk import Talk
from tests.testing.members import beat, join

from kohort.errors import KohortError
from kohort.testing import Broker

HOUR = 3600


@pytest.mark.parametrize("kind", ["real", "manual"])
@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_a_clock_that_is_returned_takes_no_time_from_anybody(kind, process):
    with (
        Broker(in_memory=True, clock=kind, process=process) as broker,
        Talk(broker.bootstrap) as client,
    ):
        before = broker.clock.now_ms
        broker.create_topic("t")
        broker.clock.advance(HOUR)
        epoch = join(client, "g")
        broker.clock.advance(20)
        broker.recover()
        assert 0 <= broker.clock.now_ms - before < 600_000
        assert beat(client, "g", epoch) == 0, "a session of 45 seconds, of which 20 are over"
        broker.clock.advance(40)
        assert beat(client, "g", epoch) == 0
        broker.clock.advance(46)
        assert beat(client, "g", epoch) == 25
        assert broker.produce("t", "x")


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_what_was_stopped_runs_again(process):
    with Broker(nodes=3, process=process) as broker:
        broker.node(1).stop()
        broker.node(2).kill(takeover=False)
        broker.faults.drop("Fetch")
        broker.recover()
        assert list(broker.faults) == []
        for index in range(3):
            with Talk(broker.node(index).address):
                pass
            with pytest.raises(KohortError, match=f"node {index} is running"):
                broker.node(index).start()
        broker.stop()
        assert broker.recover().is_running
        broker.close()
        assert broker.recover().topics == []
