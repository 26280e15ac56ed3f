"""Record batches of magic 2: build them, check them, and read their headers and records."""

from kohort.wire.batch.building import (
    RECORD_SIZE,
    build,
    build_marker,
    build_records,
    with_append_time,
)
from kohort.wire.batch.checking import check_contents
from kohort.wire.batch.header import (
    APPEND_TIME,
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    PREFIX_SIZE,
    TRANSACTIONAL,
    BatchHeader,
    check,
    header_at,
    peek,
    stamp,
    walk,
)
from kohort.wire.batch.reading import (
    Entry,
    Record,
    entries,
    marker_commits,
    marker_coordinator_epoch,
    records,
    times,
)

__all__ = [
    "APPEND_TIME",
    "CODEC_MASK",
    "CONTROL",
    "DELETE_HORIZON",
    "HEADER_SIZE",
    "PREFIX_SIZE",
    "RECORD_SIZE",
    "TRANSACTIONAL",
    "BatchHeader",
    "Entry",
    "Record",
    "build",
    "build_marker",
    "build_records",
    "check",
    "check_contents",
    "entries",
    "header_at",
    "marker_commits",
    "marker_coordinator_epoch",
    "peek",
    "records",
    "stamp",
    "times",
    "walk",
    "with_append_time",
]
