# SPDX-License-Identifier: Apache-2.0
"""What the handlers of records share: the state, what is known besides the log, and the rows that
are over.
"""

from collections.abc import Mapping
from copy import copy
from types import MappingProxyType
from typing import NamedTuple

from kohort.history.events import Record
from kohort.history.logged import Lines
from kohort.history.rows import AssignmentRow, MemberRow
from kohort.history.state import Rebalance, Rest, State

SESSION_TIMEOUT_MS = 45_000
"""The session of members that speak the consumer protocol, where nothing tells it: the least that a
broker allows by default (`group.consumer.min.session.timeout.ms`). A cluster may allow less, so it
proves nothing and only shows what is likelier.
"""


class Names:
    """Ids of topics, as text, and their names."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self._names = names or {}
        self._ids: dict[str, str | None] = {}
        for topic_id, topic in self._names.items():
            self._ids[topic] = None if topic in self._ids else topic_id
        self.asked: set[str] = set()
        """The ids and names that were asked for: the history depends on no others."""

    def anew(self) -> "Names":
        """The same names, none of which was asked for yet."""
        same = copy(self)
        same.asked = set()
        return same

    def name(self, topic_id: str) -> str | None:
        """The name of a topic; None for unknown."""
        self.asked.add(topic_id)
        return self._names.get(topic_id)

    def id(self, topic: str) -> str | None:
        """The id of a topic, if exactly one of that name is known."""
        self.asked.add(topic)
        return self._ids.get(topic)


class HistoryInputs(NamedTuple):
    """What is known besides the log of the group."""

    names: Names
    session_timeout_ms: int | None = None
    """The shortest session that a member of the consumer protocol has; None for unknown."""
    complete_offset: int | None = None
    """From which offset on nothing is missing in the log; None: from nowhere on."""
    lines: Lines = MappingProxyType({})
    """What the coordinator's log file says about members of the group that are gone."""

    def is_complete(self, offset: int) -> bool:
        """Whether nothing is missing in the log from there on."""
        return self.complete_offset is not None and offset >= self.complete_offset


class Step(NamedTuple):
    """A record, and where it stands."""

    record: Record
    rebalance: int | None
    """The rebalance that it led to, or else the last one that has begun."""
    leads: bool
    """Whether it is part of the reason for the rebalance."""
    upgrading: bool
    """Whether it is part of the conversion of a classic group."""
    begins: bool
    """Whether it begins the rebalance, or ends the group."""


class Story:
    """A group's state while records are applied to it."""

    def __init__(self, state: State, inputs: HistoryInputs) -> None:
        self.state, self.inputs = state, inputs
        self.rest: Rest | None = None
        """The latest rest that folded commits have brought, some of which end before it."""
        self.closed: list[MemberRow | AssignmentRow] = []

    def rebalance(self, offset: int, group_type: str = "consumer") -> Rebalance:
        """The rebalance of that record, which may come a little later itself.

        One that is over is not asked for again, so that numbers of what is in it stay right: the
        record is one at hand, or that of the last epoch to begin.
        """
        found = self.state.rebalances.get(offset)
        if found is None:
            found = self.state.rebalances[offset] = Rebalance(offset, group_type)
        return found

    def leads_to(self, step: Step) -> Rebalance | None:
        """The rebalance that the record is a reason for, if it is."""
        if not step.leads or step.rebalance is None:
            return None
        found = self.rebalance(step.rebalance)
        found.upgrades |= step.upgrading
        return found
