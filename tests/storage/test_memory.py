# SPDX-License-Identifier: Apache-2.0
import pytest
from tests.storage.contract import LogContract, batch, values
from tests.storage.starts import begin_at

from kohort.storage.log import StoredLog
from kohort.storage.memory import MemoryLog


class TestMemoryLog(LogContract):
    @pytest.fixture
    def log(self):
        return MemoryLog()


def test_it_is_a_log():
    log: StoredLog = MemoryLog(leader_epoch=3)
    assert log.leader_epoch == 3


def test_a_reader_goes_on_while_the_log_is_cut_from_the_front():
    log = MemoryLog()
    for name in "abcd":
        log.append(batch(name), 1)
    reader = log.read(0, 1 << 60)
    next(reader)
    begin_at(log, 2)
    assert len(list(reader)) == 2
    assert values(log) == [(2, "c"), (3, "d")]
