# SPDX-License-Identifier: Apache-2.0
"""The names in a place of tables."""

import re

MANIFEST = "manifest.json"
LOCK = ".lock"
LEASE = "writer.json"
ROWS, END, GOLD, CHECKPOINTS = "rows", "end_offsets", "gold", "checkpoints"
HISTORIES, PROGRESS, OBSERVED_HISTORY, SERVER_LOGS = "histories", "progress", "past", "server_logs"
FOLDERS = (ROWS, END, GOLD, HISTORIES, PROGRESS, OBSERVED_HISTORY, SERVER_LOGS)
"""Where files of rows are."""
_MADE = re.compile(r"(\w+[=-])?\d{6,}-[0-9a-f]{8}-\d+")


def name(what: str, number: int, token: str, count: int) -> str:
    """The name of a folder of rows, which no other attempt to write has: `number` is that of the
    manifest which is to have it, `token` that of the writer.
    """
    return f"{what}{number:06}-{token}-{count}"


def is_made(path: str) -> bool:
    """Whether a writer of tables has made it, or what it is in: whatever else lies there somebody
    has put there.
    """
    return any(_MADE.fullmatch(part) for part in path.split("/"))


def is_within(path: str) -> bool:
    """Whether a path is that of a folder of rows, in the place of the tables and nowhere else."""
    folder, *names = path.split("/")
    return folder in FOLDERS and bool(names) and not {"", ".", ".."} & {*names}
