# SPDX-License-Identifier: Apache-2.0
"""The history of a group, replayed from its records: who was there, who owned what, what each
rebalance was about and what it cost. `explained.py` chooses among the causes that `written.py`,
`logged.py`, `consumer.py`, `classic.py` and `removals.py` have found.

Pure: events in, rows out. The state in between is plain data, so a history can be put aside and
continued later.
"""

from kohort.history.events import RECORD_TYPES, Commits, Event, Record
from kohort.history.explained import undecided_or_none
from kohort.history.group import History
from kohort.history.rows import TRIGGERS, AssignmentRow, MemberRow, RebalanceRow, Row
from kohort.history.story import HistoryInputs, Names

__all__ = [
    "RECORD_TYPES",
    "TRIGGERS",
    "AssignmentRow",
    "Commits",
    "Event",
    "History",
    "HistoryInputs",
    "MemberRow",
    "Names",
    "RebalanceRow",
    "Record",
    "Row",
    "undecided_or_none",
]
