# SPDX-License-Identifier: Apache-2.0
"""CSV as RFC 4180 has it but for the line end, which is a single line feed.

`csv.writer` with that line end leaves a carriage return without quotes until Python 3.13, and a
reader takes it for the end of a line. So the writer is given both as its line end.
"""

import csv
from typing import Any, Protocol

_LINE_END = "\r\n"


class Stream(Protocol):
    """Takes texts, as an open file does."""

    def write(self, text: str, /) -> object: ...


class CsvWriter:
    """Writes rows to a stream, each by one call of its `write`."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        rows = csv.writer(self, lineterminator=_LINE_END)
        self.writerow, self.writerows = rows.writerow, rows.writerows

    def write(self, line: str) -> Any:
        """Take a line of `csv.writer`."""
        return self._stream.write(line.removesuffix(_LINE_END) + "\n")
