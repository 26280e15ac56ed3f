"""The names in a place of tables."""

MANIFEST = "manifest.json"
LOCK = ".lock"
LEASE = "writer.json"
ROWS, END, GOLD, CHECKPOINTS = "rows", "end_offsets", "gold", "checkpoints"
HISTORIES, PROGRESS = "histories", "progress"
FOLDERS = (ROWS, END, GOLD, HISTORIES, PROGRESS)
"""Where files of rows are."""
