"""Floor 6: a real broker for tests, in a process of its own, that can be killed and started
again.
"""

from kohort.testing.broker import Broker

__all__ = ["Broker"]
