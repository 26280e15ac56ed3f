# SPDX-License-Identifier: Apache-2.0
"""For unittest: a broker for the tests of a class, and a topic and a group for each of them."""

from contextlib import suppress
from typing import Any, ClassVar
from unittest import TestCase, TestResult

from kohort.errors import KohortError
from kohort.testing.broker import Broker
from kohort.testing.names import fresh_name

__tracebackhide__ = True


class BrokerCase(TestCase):
    """A TestCase with a `broker`, which starts before its first test and ends after its last.

    `broker_options` are the arguments of `Broker`.
    """

    broker_options: ClassVar[dict[str, Any]] = {}
    broker: ClassVar[Broker]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.broker = Broker(**cls.broker_options).start()
        cls.addClassCleanup(cls.broker.close)

    def run(self, result: TestResult | None = None) -> TestResult | None:
        """Run the test; then the broker is as before it, whatever the test has done to it. A broker
        that does not recover is an error of this test, and the run goes on.
        """
        if hasattr(type(self), "broker"):  # not where the class was skipped
            self.addCleanup(self.broker.recover)  # the cleanup that was added first comes last
            if not self.broker.is_running:  # an earlier test has damaged it
                with suppress(KohortError):  # then the cleanup says why
                    self.broker.recover()
        return super().run(result)

    def new_topic(self, partitions: int = 1, **options: Any) -> str:
        """The name of a topic of this test's own; it is deleted afterwards. The options are those
        of `Broker.create_topic`.
        """
        name = self.broker.create_topic(fresh_name(self._testMethodName), partitions, **options)
        self.addCleanup(self._delete_topic, name)
        return name

    def new_group(self) -> str:
        """The id of a group that nobody else uses; it is deleted afterwards."""
        name = fresh_name(self._testMethodName)
        self.addCleanup(self._delete_group, name)
        return name

    # A cleanup comes before the one of `run`: the test may have left faults or stopped the broker.

    def _delete_topic(self, name: str) -> None:
        self.broker.recover()
        if name in self.broker.topics:
            self.broker.delete_topic(name)

    def _delete_group(self, name: str) -> None:
        self.broker.recover()
        self.broker.groups[name].delete()
