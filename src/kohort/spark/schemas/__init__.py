"""Every table's columns, by name: the one place where they are described."""

from kohort.spark.schemas.rows import (
    ALL_KINDS,
    DECODED,
    END_OFFSETS,
    KINDS,
    MARKER,
    OTHER,
    QUARANTINE,
    RAW,
    RECORDS_TABLE,
    SILVER,
    TOMBSTONE,
)
from kohort.spark.schemas.table import Column, Table

__all__ = [
    "ALL_KINDS",
    "DECODED",
    "END_OFFSETS",
    "KINDS",
    "MARKER",
    "OTHER",
    "QUARANTINE",
    "RAW",
    "RECORDS_TABLE",
    "SILVER",
    "TOMBSTONE",
    "Column",
    "Table",
]
