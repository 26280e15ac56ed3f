# SPDX-License-Identifier: Apache-2.0
"""A log that begins later, as a broker has it done: noted first, then in memory, then the files."""


def begin_at(log, offset):
    """Let a log begin at an offset, and remove the files before that."""
    if offset > log.synced:
        log.sync()
    log.note_start(offset)
    log.move_start(offset)
    while log.remove_oldest():
        pass


def retain(log, now, retention_ms, retention_bytes):
    """Retention; the new start."""
    begin_at(log, log.retention_start(now, retention_ms, retention_bytes))
    return log.start
