# SPDX-License-Identifier: Apache-2.0
"""Whether a finished cleaning may take the place of the segments that it covers.

The cleaner keeps the last batch of what it rewrites, and never touches the segment that is written
to. A file that ends earlier, or reaches into that segment, is not what the cleaner has written.
"""

from kohort.storage.files import Files
from kohort.storage.open_files import OpenFiles
from kohort.storage.segment import Segment, segment_bases
from kohort.terms import Offset

SWAP_SUFFIX = ".log.swap"


def look_at_swap(files: Files, folder: str, base: Offset) -> tuple[list[Offset], str]:
    """The segments that a swap file covers, and why it cannot take their place, or "".

    Every crc is computed. May raise OSError.
    """
    swapped = Segment(OpenFiles(files), folder, base, interval=1 << 30, suffix=SWAP_SUFFIX)
    bad = swapped.scan(check=True)
    swapped.file.close()
    bases = segment_bases(files.names(folder))
    covered = [
        base_offset
        for base_offset in bases
        if base_offset == base or base <= base_offset < swapped.end
    ]
    if bad is not None:
        return covered, f"it is damaged at byte {bad[0]}: {bad[1]}"
    if not covered or swapped.end in bases[bases.index(covered[-1]) + 1 :]:
        return covered, ""
    last = Segment(OpenFiles(files), folder, covered[-1], interval=1 << 30)
    last.scan(check=False)
    last.file.close()
    if last.end > swapped.end:
        reason = f"it ends at offset {swapped.end}, expected {last.end}, where {last.path} ends"
        return covered, reason
    if swapped.size and covered[-1] == bases[-1]:
        return covered, f"it reaches into {last.path}, which is written to"
    return covered, ""
