"""How long the loop of a broker is away, in virtual time: bytes and syncs cost something.

Real processors are faster or slower; what counts is that what grows with the work takes longer.
"""

PER_PIECE_US = 50  # that arrives or leaves
BYTES_PER_US = 20  # read or written
SYNC_US = 1000  # on the loop, not on a thread


def of_bytes(size: int) -> int:
    """Microseconds for a piece that arrives or leaves."""
    return PER_PIECE_US + size // BYTES_PER_US
