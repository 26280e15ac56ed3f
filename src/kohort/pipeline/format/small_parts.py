"""Small parts of a table, which become one where there are many: each is a file to open."""

from collections.abc import Iterable

from kohort.pipeline.format.manifest import Part

MOST_PARTS = 10
"""So many small parts become one."""
FEW_ROWS = 200_000
"""A part with fewer rows is small."""


def to_join(parts: Iterable[Part], most: int = MOST_PARTS) -> list[Part]:
    """Small parts that should become one; none where they are fewer than `most`."""
    small = [part for part in parts if part.rows < FEW_ROWS]
    return small if len(small) >= most else []
