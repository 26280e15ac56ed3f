# SPDX-License-Identifier: Apache-2.0
"""Brokers for unittest."""

import socket
import unittest
from typing import Any, ClassVar

from kohort.testing import Broker, BrokerCase

seen = []


class Case(BrokerCase):
    __test__ = False  # it is run by the tests below
    broker_options: ClassVar[dict[str, Any]] = {"clock": "manual", "in_memory": True}

    def test_one(self):
        topic, group = self.new_topic(3, configs={"retention.ms": 7}), self.new_group()
        self.assertIn(topic, self.broker.topics)  # noqa: PT009
        seen.append((self.broker, topic, group))

    def test_two(self):
        seen.append((self.broker, self.new_topic(), self.new_group()))
        self.assertEqual(self.broker.topics, [seen[-1][1]])  # noqa: PT009


def test_a_class_has_a_broker_and_a_test_what_it_needs():
    seen.clear()
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert (result.testsRun, result.errors, result.failures) == (2, [], [])
    (first, topic, group), (second, topic_2, group_2) = seen
    assert isinstance(first, Broker)
    assert first is second
    assert topic.startswith("test_one-")
    assert len({topic, group, topic_2, group_2}) == 4
    assert not first.is_running


class Damaging(BrokerCase):
    __test__ = False  # it is run by the tests below
    broker_options: ClassVar[dict[str, Any]] = {"in_memory": True}

    def test_a_takes_the_port(self):
        host, port = self.broker.bootstrap.split(":")
        self.broker.stop()
        seen.append(socket.create_server((host, int(port))))

    def test_b_goes_on(self):
        self.assertEqual(self.broker.topics, [])  # noqa: PT009

    def test_c_goes_on(self):
        self.assertEqual(self.broker.topics, [])  # noqa: PT009


class ReleasesPort(unittest.TestResult):
    def stopTest(self, test):  # noqa: N802  (unittest's name)
        super().stopTest(test)
        while seen:
            seen.pop().close()


def test_a_broker_that_does_not_recover_is_an_error_of_the_test_that_has_damaged_it():
    seen.clear()
    result = ReleasesPort()
    unittest.defaultTestLoader.loadTestsFromTestCase(Damaging).run(result)
    assert result.testsRun == 3
    [(case, text)] = result.errors
    assert case.id().endswith("test_a_takes_the_port")
    assert "the broker did not start" in text


class Stopping(BrokerCase):
    __test__ = False  # it is run by the test below

    def test_a_stops_it(self):
        seen.append((self.new_topic(), self.new_group()))
        self.broker.stop()

    def test_b_deletes_its_topic(self):
        self.broker.delete_topic(self.new_topic())

    def test_c_finds_it_as_before(self):
        self.assertEqual(self.broker.topics, [])  # noqa: PT009


def test_a_test_may_stop_its_broker_and_delete_its_topic():
    seen.clear()
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Stopping).run(result)
    assert (result.testsRun, result.errors, result.failures) == (3, [], [])


def test_it_is_no_test_itself():
    assert unittest.defaultTestLoader.loadTestsFromTestCase(BrokerCase).countTestCases() == 0
