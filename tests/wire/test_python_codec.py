# SPDX-License-Identifier: Apache-2.0
"""The functions of the codec in Python: each keeps the source that it was made of."""

import linecache

from kohort.wire import python_codec
from kohort.wire.messages.offset_commit import OffsetCommitRequest


def test_a_bounded_decoder_keeps_its_source_apart():
    """Tracebacks and `kohort inspect codec` show the function that was asked for."""
    decoders = [
        python_codec.decoder(OffsetCommitRequest, 8, most, lenient=lenient)
        for most, lenient in ((None, False), (7, False), (None, True), (7, True))
    ]
    sources = ["".join(linecache.getlines(one.__code__.co_filename)) for one in decoders]
    assert ["refuse_many" in source for source in sources] == [False, True, False, True]
    assert ["replace" in source for source in sources] == [False, False, True, True]
