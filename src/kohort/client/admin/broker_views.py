"""What brokers are asked about their partitions, in the words of callers."""

from typing import Literal, TypeAlias

ElectionType: TypeAlias = Literal["preferred", "unclean"]
"""Which replica is to lead: the first one in sync, or any (KIP-460)."""
