# SPDX-License-Identifier: Apache-2.0
"""Which columns of the pipeline's tables a terminal shows. A pipe and JSON are as wide as they are.

A table has the columns that it is for: they never give way, and fit into 80 columns with names of
twelve letters. The others go from the right, where the terminal is narrower.
"""

from dataclasses import dataclass

WHERE = ("group_id", "topic", "topic_partition")


@dataclass(frozen=True, slots=True)
class TerminalColumns:
    """The columns of a table in the order of a terminal, and those that it is for."""

    names: tuple[str, ...]
    purpose: frozenset[str]

    @property
    def spare(self) -> tuple[str, ...]:
        """The headers that a narrow terminal can do without, the least useful first."""
        return tuple(name.upper() for name in reversed(self.names) if name not in self.purpose)


def _shown(names: str, purpose: str) -> TerminalColumns:
    return TerminalColumns(tuple(names.split()), frozenset(purpose.split()))


SHOWN = {
    "rebalances": _shown(
        "group_id epoch started_at trigger likely unread_seconds seconds outcome members "
        "partitions_moved possible started_before evidence",
        "group_id started_at trigger likely unread_seconds",
    ),
    "assignments": _shown(
        "group_id topic topic_partition member_id valid_from valid_to epoch",
        "group_id topic topic_partition member_id valid_from",
    ),
    "members": _shown(
        "group_id client_id valid_from valid_to client_host member_id group_instance_id is_leader "
        "subscribed_topics",
        "group_id client_id valid_from valid_to",
    ),
    "offsets": _shown(
        "group_id topic topic_partition committed_offset committed_at pending metadata",
        "group_id topic topic_partition committed_offset",
    ),
    "lag": _shown(
        "group_id topic topic_partition lag_records lag_seconds level committed_offset end_offset "
        "at",
        "group_id topic topic_partition lag_records lag_seconds",
    ),
    "lag_history": _shown(
        "group_id topic topic_partition at lag_records lag_seconds lag_records_max lag_seconds_max "
        "level first_at moments",
        "group_id topic topic_partition at lag_records lag_seconds",
    ),
    "status": _shown(
        "group_id rules topic topic_partition status rule lag_records lag_seconds last_commit_at "
        "level",
        "group_id rules topic topic_partition status rule",
    ),
    "status_history": _shown(
        "group_id rules status valid_from valid_to reasons worst_lag_records worst_lag_seconds "
        "runs",
        "group_id rules status valid_from valid_to",
    ),
    "deletable_groups": _shown(
        "group_id deletable state last_commit_at days_idle expires_at type reason",
        "group_id deletable reason",
    ),
    "commits": _shown(
        "group_id topic topic_partition committed_offset effective_at state metadata producer_id",
        "group_id topic topic_partition committed_offset effective_at",
    ),
    "commit_rates": _shown(
        "group_id topic topic_partition records_per_second effective_at committed_offset commits "
        "seconds records is_reset",
        "group_id topic topic_partition records_per_second effective_at",
    ),
    "end_offsets": _shown(
        "topic topic_partition end_offset sampled_at log_start_offset origin samples topic_id",
        "topic topic_partition end_offset sampled_at",
    ),
    "group_state": _shown(
        "group_id group_type state epoch members protocol timestamp protocol_type leader offset",
        "group_id group_type state epoch members",
    ),
    "quarantine": _shown(
        "partition offset error type timestamp key value", "partition offset error"
    ),
}
"""Tables that are not listed here show all of their columns, and the first two never give way."""
