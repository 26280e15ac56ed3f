# SPDX-License-Identifier: Apache-2.0
"""Who is told what happens, in a test: lines by level."""


class RecordingObserver:
    """An observer that remembers. `errors` must be empty unless a test says otherwise."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self.errors: list[str] = []

    def info(self, text: str, /) -> None:
        self.lines.append(text)

    def warning(self, text: str, /) -> None:
        self.warnings.append(text)

    def error(self, text: str, /) -> None:
        self.errors.append(text)
