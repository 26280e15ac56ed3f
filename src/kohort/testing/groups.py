# SPDX-License-Identifier: Apache-2.0
"""The groups of a broker under test: what they are, what they were, and waiting for what they will
be. Everything here blocks; in an asyncio test, call it by `asyncio.to_thread`.
"""

import asyncio
import warnings
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Protocol

from kohort.client.admin.group_views import GroupDescription, MemberDescription
from kohort.errors import ApiError, ErrorCode, KohortError
from kohort.figures import counted
from kohort.runtime.clocks import monotonic, sleep
from kohort.terms import GroupState, TopicPartition
from kohort.testing.arguments import check_seconds, check_text, check_whole
from kohort.testing.history import (
    Commit,
    GroupRecord,
    Ownership,
    assignment_text,
    commits,
    ownerships,
)

__tracebackhide__ = True
WAIT_S = 30.0
DELETE_S = 5.0  # for members that join again while their group is deleted
LOOK_S = 0.005  # between two looks while waiting
ASKED_FOR_MAX = 100  # ids that are noted; the report of a failure shows some of the first ones
LAST_MOMENTS = 5  # of the history, in the picture of a group

Wanted = str | GroupState


class WaitTimeoutError(KohortError, TimeoutError):
    """What a test waited for has not come. The text says what there was instead."""


class BrokerQueries(Protocol):
    """Who asks the broker: `ask` runs one of the coroutines of an `ClusterClient` to its end."""

    def ask(self, question: str, *arguments: Any) -> Any: ...
    def command(self, command: str, *arguments: Any) -> Any: ...
    def log(self) -> str: ...


class GroupHandle:
    """One group, by its id; it need not exist yet. `str()` of it is a picture for people."""

    def __init__(self, broker: BrokerQueries, group_id: str) -> None:
        self.id = group_id
        self._broker = broker

    def __repr__(self) -> str:
        return f"<group {self.id}>"

    def describe(self) -> GroupDescription | None:
        """The group with its members, as an admin client sees it; None when there is none."""
        found: GroupDescription | None = self._broker.ask("describe", self.id)
        return found

    @property
    def state(self) -> GroupState | str:
        """`Stable`, `Empty` and so on, by Kafka's names; `Dead` when there is no such group."""
        found = self.describe()
        return GroupState.DEAD if found is None else found.state

    @property
    def members(self) -> tuple[MemberDescription, ...]:
        found = self.describe()
        return () if found is None else found.members

    @property
    def owners(self) -> dict[TopicPartition, str]:
        """The member id that has each partition now."""
        return {
            TopicPartition(topic, partition): member.member_id
            for member in self.members
            for topic, partitions in (member.assignment or {}).items()
            for partition in partitions
        }

    def committed(self) -> dict[TopicPartition, int]:
        """The offset of the next record that the group wants, where one was committed."""
        found: dict[TopicPartition, int] = self._broker.ask("committed", self.id)
        return found

    def commit(self, topic: str, offset: int = 0, *, partition: int = 0) -> None:
        """Put the group at an offset, as if it had committed that. Raises ApiError while the group
        has members, and for a partition that does not exist.
        """
        check_text("topic", topic)
        check_whole("offset", offset)
        check_whole("partition", partition)
        self._broker.ask("commit", self.id, TopicPartition(topic, partition), offset)

    def lag(self) -> dict[TopicPartition, int]:
        """How many records each partition has behind what is committed there: of each that the
        group has committed, that a member is assigned, or whose topic a member subscribes to.

        Where nothing was committed it is all that the partition holds, from its first record on.
        """
        return {place: lag for place, _, _, lag in self._progress(self.describe())}

    def _progress(
        self, found: GroupDescription | None
    ) -> list[tuple[TopicPartition, int | None, int, int]]:
        """Each partition with what is committed there, its end and the lag."""
        committed = self.committed()
        wanted = dict.fromkeys(committed)
        for member in () if found is None else found.members:
            for assignment in (member.assignment, member.target_assignment):
                for topic, partitions in (assignment or {}).items():
                    wanted.update((TopicPartition(topic, index), None) for index in partitions)
        subscribed = {
            topic: None
            for member in (() if found is None else found.members)
            for topic in member.subscribed_topics or ()
        }
        wanted.update(dict.fromkeys(self._broker.ask("partitions_of", list(subscribed))))
        places = sorted(wanted)
        ends = self._broker.ask("ends", places, "latest")
        new = [place for place in places if place not in committed]
        begins = self._broker.ask("ends", new, "earliest") if new else {}
        progress = []
        for place in places:
            offset, end = committed.get(place), ends[place]
            lag = end - (begins[place] if offset is None else offset)
            progress.append((place, offset, end, lag))
        return progress

    def is_now(
        self,
        state: Wanted | None = None,
        members: int | None = None,
        *,
        where: Callable[[GroupDescription], bool] | None = None,
    ) -> bool:
        """Whether the group is in this state, has so many members, and `where` holds of its
        description, all at one moment. Raises KohortError for a state that does not exist.
        """
        _check(state, members, where)
        return _is(self.describe(), state, members, where)

    def wait(
        self,
        state: Wanted | None = None,
        members: int | None = None,
        *,
        where: Callable[[GroupDescription], bool] | None = None,
        timeout: float = WAIT_S,
    ) -> GroupDescription | None:
        """Wait until `is_now` is true. Returns the description; None for a group that is gone, when
        `Dead` was waited for.

        Raises WaitTimeoutError with what the group looks like, after `timeout` seconds, and
        KohortError for a state that does not exist.
        """
        _check(state, members, where)
        check_seconds("timeout", timeout)
        deadline = monotonic() + timeout
        while True:
            found = self.describe()
            if _is(found, state, members, where):
                return found
            if monotonic() > deadline:
                text = ", ".join(
                    f"{name}={value!r}"
                    for name, value in (("state", state), ("members", members), ("where", where))
                    if value is not None
                )
                raise self._late(text, timeout)
            sleep(LOOK_S)

    def wait_committed(
        self,
        topic: str,
        offset: int | None = None,
        *,
        partition: int | None = None,
        timeout: float = WAIT_S,
    ) -> dict[TopicPartition, int]:
        """Wait until the group has committed this offset, or a later one, in a partition of the
        topic, the first by default. Without an offset: everything that the topic holds at the time,
        in this partition or in all of them. Returns what is committed.

        Raises WaitTimeoutError with what the group looks like, after `timeout` seconds.
        """
        check_text("topic", topic)
        if offset is not None:
            check_whole("offset", offset)
        check_seconds("timeout", timeout)
        deadline = monotonic() + timeout
        ends = self._broker.ask("topic_ends", topic)
        if partition is not None and TopicPartition(topic, partition) not in ends:
            raise KohortError(
                f"partition is {partition!r}, expected 0 to {len(ends) - 1}: {topic} has no other"
            )
        if offset is not None:
            wanted = {TopicPartition(topic, partition or 0): offset}
        else:
            wanted = {
                place: end
                for place, end in ends.items()
                if end and partition in (None, place.partition)
            }
        while True:
            committed = self.committed()
            if all(committed.get(place, 0) >= end for place, end in wanted.items()):
                return committed
            if monotonic() > deadline:
                text = ", ".join(f"{place} at {end}" for place, end in wanted.items())
                raise self._late(f"committed {text}", timeout)
            sleep(LOOK_S)

    def records(self) -> tuple[GroupRecord, ...]:
        """What the log of the groups holds about this one, decoded, oldest first."""
        return tuple(self._broker.ask("group_records", self.id))

    def history(self) -> tuple[Ownership, ...]:
        """Who owned what, moment by moment, from the records."""
        return tuple(ownerships(self.records(), self._broker.ask("topic_ids")))

    def commits(self) -> tuple[Commit, ...]:
        """Every offset that was committed, in order, from the records."""
        return tuple(commits(self.records()))

    def coordinator(self) -> int:
        """The index of the node that coordinates the group."""
        found: int = self._broker.command("coordinator", self.id)
        return found

    def move(self, node: int | None = None) -> int:
        """Let another node coordinate the group, with all groups of its partition; the index of the
        node. Clients are told at their next request, and find the new one by themselves.
        """
        if node is not None:
            check_whole("node", node)
        found: int = self._broker.command("move", self.id, node)
        return found

    def remove_members(self, client_id: str | None = None) -> int:
        """Take all members out, or those of a client, as if they had left; how many they were.
        They do not know: the next request of each is refused.
        """
        if client_id is not None:
            check_text("client_id", client_id)
        found: int = self._broker.ask("remove_members", self.id, client_id)
        return found

    def delete(self) -> None:
        """Delete the group, with its offsets and without asking its members. Fine when it is gone.

        Close its consumers first. One that goes on polling is not told: in a classic group it joins
        again, which makes the group anew; with KIP-848 it may find that the group is gone, which is
        fatal to a consumer of `confluent-kafka`. Raises ApiError when members come back for longer
        than some seconds.
        """
        deadline = monotonic() + DELETE_S
        while True:
            self.remove_members()
            try:
                self._broker.ask("delete_group", self.id)
            except ApiError as error:
                if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
                    return
                if error.code is not ErrorCode.NON_EMPTY_GROUP or monotonic() > deadline:
                    raise
            else:
                return

    def __str__(self) -> str:
        """What the group looks like now: state, members, offsets, and how it came to that."""
        try:
            return "\n".join(self._picture())
        except Exception as error:  # noqa: BLE001  (it is shown for the sake of another failure)
            return f"group {self.id}: cannot be asked: {error}"

    def _picture(self) -> Iterator[str]:
        found = self.describe()
        if found is None:
            yield f"group {self.id}: does not exist"
        else:
            epoch = "" if found.group_epoch is None else f", epoch {found.group_epoch}"
            members = counted(len(found.members), "member")
            yield f"group {self.id}: {found.type} {found.state}{epoch}, {members}"
            for member in found.members:
                at = "" if member.member_epoch is None else f" at epoch {member.member_epoch}"
                yield f"  {member.member_id} ({member.client_id}){at}: {_owned(member)}"
        for place, offset, end, lag in self._progress(found):
            committed = "nothing" if offset is None else offset
            yield f"  {place} committed {committed}, end {end}, lag {lag}"
        for moment in self.history()[-LAST_MOMENTS:]:
            yield f"  {moment}"
        told = [line for line in self._broker.log().splitlines() if f" group {self.id}: " in line]
        for line in told[-LAST_MOMENTS:]:
            yield f"  {line}"

    def _late(self, what: str, seconds: float) -> WaitTimeoutError:
        text = f"not within {seconds:g} s: {what}\n{self}"
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return WaitTimeoutError(text)
        return WaitTimeoutError(
            f"{text}\nThe event loop of this thread stood still meanwhile, with all clients in it:"
            " wait by asyncio.to_thread."
        )


def _check(state: Wanted | None, members: int | None, where: object) -> None:
    """Raises KohortError for what no group can be."""
    if where is not None and not callable(where):
        raise KohortError(f"where is {where!r}, expected a function of a description")
    if members is not None:
        check_whole("members", members)
    if state is None:
        return
    names = {str(state).lower(): str(state) for state in GroupState}
    if not isinstance(state, str) or state.lower() not in names:
        near = get_close_matches(str(state).lower(), names, n=1)
        hint = f"did you mean {names[near[0]]}?" if near else f"there are {', '.join(GroupState)}"
        raise KohortError(f"no state of a group is called {state!r}; {hint}")


def _is(
    found: GroupDescription | None,
    state: Wanted | None,
    members: int | None,
    where: Callable[[GroupDescription], bool] | None,
) -> bool:
    now = GroupState.DEAD if found is None else found.state
    count = 0 if found is None else len(found.members)
    return (
        (state is None or str(state).lower() == now.lower())
        and members in (None, count)
        and (where is None or (found is not None and where(found)))
    )


def _owned(member: MemberDescription) -> str:
    has = assignment_text(member.assignment)
    if member.target_assignment in (None, member.assignment):
        return has
    return f"{has}; should have {assignment_text(member.target_assignment)}"


class Groups(Mapping[str, GroupHandle]):
    """The groups of a broker by id. Any id gives a handle, also of a group that is yet to come."""

    def __init__(self, broker: BrokerQueries) -> None:
        self._broker = broker
        self.asked_for: dict[str, None] = {}  # since the plugin of pytest has cleared it, if ever

    def __repr__(self) -> str:
        return f"<groups of {self._broker!r}>"

    def __getitem__(self, group_id: str) -> GroupHandle:
        if not isinstance(group_id, str):
            raise KohortError(f"a group's id is {group_id!r}, expected a text")
        if len(self.asked_for) < ASKED_FOR_MAX:
            self.asked_for[group_id] = None
        return GroupHandle(self._broker, group_id)

    @property
    def missing(self) -> dict[int | TopicPartition, ApiError]:
        """Whose groups are in no list now, and why: the index of a node, or the partition of
        `__consumer_offsets` of a coordinator that cannot be asked, as one whose log is damaged.
        """
        return self._list()[1]

    def __contains__(self, group_id: object) -> bool:
        """Raises ApiError where the group would be among those that are missing."""
        names, missing = self._list()
        if group_id in names or not missing or not isinstance(group_id, str):
            return group_id in names
        shard = self._broker.ask("shard_of", group_id)
        for part, error in missing.items():
            if isinstance(part, int) or part == shard:
                raise error
        return False

    def __iter__(self) -> Iterator[str]:
        """The ids of those that exist now. Where some are missing, a RuntimeWarning says which."""
        return iter(self._names())

    def __len__(self) -> int:
        """How many exist now, with the same warning."""
        return len(self._names())

    def _names(self) -> list[str]:
        names, missing = self._list()
        if missing:
            text = "; ".join(f"{_shown(part)} ({error})" for part, error in missing.items())
            warnings.warn(f"groups are missing: {text}", RuntimeWarning, stacklevel=3)
        return names

    def _list(self) -> tuple[list[str], dict[int | TopicPartition, ApiError]]:
        found: tuple[list[str], dict[int | TopicPartition, ApiError]] = self._broker.ask(
            "group_names"
        )
        return found


def _shown(part: int | TopicPartition) -> str:
    return f"those of node {part}" if isinstance(part, int) else f"those of {part}"
