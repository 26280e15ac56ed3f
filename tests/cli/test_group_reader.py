# SPDX-License-Identifier: Apache-2.0
"""What a member has printed is committed, and nothing else. The command itself: test_consume.py."""

import asyncio
from argparse import ArgumentParser

import pytest

from kohort.cli.connection import Connection, Server
from kohort.cli.consume import COMMAND
from kohort.cli.group_reader import read_as_member
from kohort.security.settings import Security
from kohort.testing import Broker


class Printed:
    """A pipe that takes so many batches, and is closed then."""

    def __init__(self, left, batches):
        self.left = left
        self.values = []
        self._batches = batches

    def write(self, record):
        self.values.append(record.value)
        self.left -= 1

    def flush(self):
        if not self._batches:
            raise BrokenPipeError
        self._batches -= 1


@pytest.fixture(scope="module")
def broker():
    with Broker(in_memory=True) as broker:
        broker.create_topic("orders")
        broker.produce("orders", *range(1200))
        yield broker


def read(broker, group, printer):
    parser = ArgumentParser()
    COMMAND.configure(parser)
    args = parser.parse_args(["orders", "--group", group, "--from-beginning"])
    connection = Connection(Server(broker.bootstrap, "test"), Security())
    asyncio.run(read_as_member(connection, ["orders"], args, printer))


def test_no_more_is_taken_than_is_wanted(broker):
    printer = Printed(700, 100)
    read(broker, "some", printer)
    assert printer.values == [b"%d" % number for number in range(700)]
    assert broker.groups["some"].committed() == {("orders", 0): 700}


def test_what_the_pipe_did_not_take_is_not_committed(broker):
    printer = Printed(1200, 1)
    with pytest.raises(BrokenPipeError):
        read(broker, "broken", printer)
    (committed,) = broker.groups["broken"].committed().values()
    assert 0 < committed < len(printer.values)
