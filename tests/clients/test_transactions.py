# SPDX-License-Identifier: Apache-2.0
"""Stock clients read, write on and commit in transactions, while they and the broker are killed."""

import pytest
from tests.clients.member_processes import create_topic
from tests.clients.transactional_workers import (
    NUMBERS,
    WORKERS,
    Reader,
    Shift,
    assert_each_number_is_written_on_once,
    produce,
    reach,
)

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]


@pytest.mark.parametrize("kind", WORKERS)
def test_every_number_is_written_on_once_whoever_is_killed(kind, broker, tmp_path):
    """KIP-98, KIP-447: what a killed worker has left is aborted, and its successor goes on."""
    create_topic(broker.bootstrap, "in", 2)
    create_topic(broker.bootstrap, "out", 2)
    produce(broker.bootstrap)
    reader = Reader(broker.bootstrap)
    with Shift(kind, broker.bootstrap, tmp_path) as shift:
        reach(shift, reader, NUMBERS // 6)
        shift.kill()
        reach(shift, reader, NUMBERS // 3)
        broker.kill()
        broker.restart()
        reach(shift, reader, NUMBERS // 2)
        shift.kill()
        broker.kill()
        broker.restart()
        reach(shift, reader, NUMBERS)
    assert_each_number_is_written_on_once(reader)
