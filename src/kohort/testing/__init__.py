"""Floor 6: a real broker for tests, in a process of its own, which a test can kill and restart."""

from kohort.testing.broker import Broker

__all__ = ["Broker"]
