"""For unittest: a broker for the tests of a class, and a topic and a group for each of them."""

from typing import Any, ClassVar
from unittest import TestCase, TestResult

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
        """Run the test; then the broker is as before it, whatever the test has done to it."""
        try:
            return super().run(result)
        finally:
            if hasattr(type(self), "broker"):  # not where the class was skipped
                self.broker.recover()

    def new_topic(self, partitions: int = 1, **options: Any) -> str:
        """The name of a topic of this test's own; it is deleted afterwards. The options are those
        of `Broker.create_topic`.
        """
        name = self.broker.create_topic(fresh_name(self._testMethodName), partitions, **options)
        self.addCleanup(self.broker.delete_topic, name)
        self.addCleanup(self.broker.faults.clear)  # the cleanup that was added last comes first
        return name

    def new_group(self) -> str:
        """The id of a group that nobody else uses; it is deleted afterwards."""
        name = fresh_name(self._testMethodName)
        self.addCleanup(self.broker.groups[name].delete)
        self.addCleanup(self.broker.faults.clear)
        return name
