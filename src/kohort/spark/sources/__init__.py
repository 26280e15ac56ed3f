"""Where raw rows come from: one contract, several classes."""

from kohort.spark.sources.source import (
    Identity,
    Mark,
    Note,
    Plan,
    Position,
    Source,
    SourceError,
)

__all__ = [
    "Identity",
    "Mark",
    "Note",
    "Plan",
    "Position",
    "Source",
    "SourceError",
]
