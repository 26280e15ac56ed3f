# SPDX-License-Identifier: Apache-2.0
"""Which offsets are missing in a log that is otherwise whole.

Kafka's cleaner leaves holes between segments, and so does a repair. Those that are there when a log
comes to us are noted; one that is found later is a segment that somebody has lost.
"""

from typing import NamedTuple

from kohort.errors import WireError
from kohort.storage.files import Files
from kohort.storage.open_files import OpenFiles
from kohort.storage.segment import Segment, segment_bases
from kohort.terms import Offset


class Survey(NamedTuple):
    """What the headers of a log tell: of all of it, or of what stands before damage."""

    holes: list[tuple[Offset, Offset]]
    end: Offset
    highest_producer_id: int


def survey(files: Files, folder: str, start: Offset) -> Survey:
    """Look at every header of the log in a folder that should begin at `start`; holes within other
    segments than the last are nobody's concern. May raise OSError.
    """
    holes: list[tuple[Offset, Offset]] = []
    highest = -1
    end = start
    bases = segment_bases(files.names(folder))
    try:
        for base in bases:
            if end < base:
                holes.append((end, base))
            end = base
            segment = Segment(OpenFiles(files), folder, base, interval=1 << 30)
            for _, header in segment.headers():
                highest = max(highest, header.producer_id)
                if base == bases[-1] and end < header.base_offset:
                    holes.append((end, Offset(header.base_offset)))
                end = Offset(header.last_offset + 1)
    except WireError:
        pass
    return Survey(holes, end, highest)
