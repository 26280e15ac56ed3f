"""A line of the broker's log, as `kohort serve` and a broker under test write it."""

import logging

CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}


class OneLine(logging.Formatter):
    """Escapes line breaks: a name that a client chose must not begin a line of the log."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (its name there)
        record.message = record.message.translate(CONTROLS)
        return super().formatMessage(record)
