"""The names in a place of tables."""

MANIFEST = "manifest.json"
LOCK = ".lock"
LEASE = "writer.json"
ROWS, END, GOLD, CHECKPOINTS = "rows", "end_offsets", "gold", "checkpoints"
HISTORIES, PROGRESS, PAST, SERVER_LOGS = "histories", "progress", "past", "server_logs"
FOLDERS = (ROWS, END, GOLD, HISTORIES, PROGRESS, PAST, SERVER_LOGS)
"""Where files of rows are."""
