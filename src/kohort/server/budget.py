"""Bytes that all connections of a broker share, however many clients there are."""


class Budget:
    """What is taken must be given back. As long as anything is left something may be taken,
    whatever its size: no request is too large for an empty broker, and only one taker passes the
    limit.
    """

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    @property
    def left(self) -> int:
        """What is left, below 0 when the limit is passed."""
        return self.limit - self.used

    def take(self, size: int) -> bool:
        """Take this many bytes, if anything is left."""
        if self.used >= self.limit:
            return False
        self.used += size
        return True

    def give(self, size: int) -> None:
        self.used -= size


class Memory:
    """The two budgets of a broker: for large requests coming in, and for answers going out."""

    __slots__ = ("answers", "requests")

    def __init__(self, requests: int, answers: int) -> None:
        self.requests = Budget(requests)
        self.answers = Budget(answers)
