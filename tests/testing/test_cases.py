"""Brokers for unittest."""

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


def test_it_is_no_test_itself():
    assert unittest.defaultTestLoader.loadTestsFromTestCase(BrokerCase).countTestCases() == 0
