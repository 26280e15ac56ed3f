# SPDX-License-Identifier: Apache-2.0
"""What `AdminClient` does with groups."""

from collections.abc import Iterable, Mapping

from kohort.client.admin import arguments, hints
from kohort.client.admin.answers import Answers, OutcomeAnswers
from kohort.client.admin.calls import AdminCalls
from kohort.client.topic_partitions import ByPartition, Partition
from kohort.terms import TopicPartition


class GroupOperations(AdminCalls):
    """List, describe and delete groups; their settings, members and offsets.

    `timeout` is how many seconds a call may take, instead of those of the client.
    """

    def list_groups(
        self,
        *,
        states: "hints.StateName | Iterable[hints.StateName] | None" = None,
        types: "hints.TypeName | Iterable[hints.TypeName] | None" = None,
        protocols: str | Iterable[str] | None = None,
        consumers_only: bool = False,
        timeout: float | None = None,
    ) -> "Answers[hints.ListedPart, tuple[hints.GroupListing, ...], hints.Listings]":
        """All groups of all brokers, of every protocol type (KIP-40): one ListGroups each.

        Args:
            states: only groups in one of these (KIP-518): GroupState or its name in any case.
            types: only groups of one of these (KIP-848): GroupType or its name in any case.
            protocols: only groups whose protocol type is one of these, such as "connect"; "" is
                that of a group without members that only has offsets. The client filters: every
                broker knows this.
            consumers_only: only groups of consumers: those of the protocol types "consumer" and "".
            timeout: seconds that this call may take, instead of those of the client.

        None filters nothing; an empty filter and an unknown name are ValueErrors.

        Returns:
            The groups of all brokers that answered, sorted by id. `errors` names the brokers that
            did not, or were too old for a filter (states need ListGroups v4, types v5), and the
            coordinators that nobody is at the moment, by their partitions of __consumer_offsets.
            One by one: the id of each broker that answers, with its groups; the partition of a
            coordinator that has moved meanwhile, with those that nobody has listed before; and at
            the end what is in `missing`.

        Raises:
            UnsupportedVersionError: every broker is too old for the filter. No broker was sent an
                unfiltered request.
            ApiError: no broker answered; this is the first one's error.
        """
        from kohort.client.admin import listings

        wanted_states = None if states is None else arguments.names("states", states)
        wanted_types = None if types is None else arguments.names("types", types)
        wanted_protocols = listings.protocol_types(
            None if protocols is None else arguments.names("protocols", protocols),
            consumers_only=consumers_only,
        )
        return self._answers(
            timeout,
            lambda deadline, arrived: listings.list_groups(
                self._cluster,
                states=wanted_states,
                types=wanted_types,
                protocols=wanted_protocols,
                deadline=deadline,
                arrived=arrived,
            ),
        )

    def describe_groups(
        self,
        group_ids: str | Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> "OutcomeAnswers[str, hints.GroupDescription]":
        """Groups and their members, of either protocol in one view (KIP-40, KIP-848).

        The client asks each coordinator for all its groups by ConsumerGroupDescribe, and by
        DescribeGroups for the groups that the first call does not know. It asks a coordinator that
        is too old for the first call by the second alone. A group that does not exist is
        GROUP_ID_NOT_FOUND, whatever the broker's age.

        `include_authorized_operations` asks what this client may do with each group (KIP-430);
        below DescribeGroups v3 it is refused for groups of the classic protocol.
        """
        from kohort.client.admin import groups

        ids = arguments.names("group_ids", group_ids)
        return self._answers(
            timeout,
            lambda deadline, arrived: groups.describe_groups(
                self._cluster,
                ids,
                include_authorized_operations=include_authorized_operations,
                deadline=deadline,
                arrived=arrived,
            ),
        )

    def delete_groups(
        self, group_ids: str | Iterable[str], *, timeout: float | None = None
    ) -> OutcomeAnswers[str, None]:
        """Delete groups and their committed offsets (KIP-229): one DeleteGroups per coordinator.

        A group with members is not deleted: NON_EMPTY_GROUP. An unknown one is GROUP_ID_NOT_FOUND.
        No request is sent twice. When the connection breaks before the answer, the outcome is
        NETWORK_EXCEPTION, and you must look whether the group is gone.
        """
        from kohort.client.admin import groups

        ids = arguments.names("group_ids", group_ids)
        return self._answers(
            timeout,
            lambda deadline, arrived: groups.delete_groups(
                self._cluster, ids, deadline=deadline, arrived=arrived
            ),
        )

    async def describe_group_configs(
        self, group_ids: str | Iterable[str], *, timeout: float | None = None
    ) -> "hints.Outcomes[str, dict[str, hints.GroupConfig]]":
        """The settings of groups by name, whether they exist or not (KIP-848)."""
        from kohort.client.admin import configs

        return await configs.describe_group_configs(
            self._cluster, arguments.names("group_ids", group_ids), deadline=self._deadline(timeout)
        )

    async def alter_group_configs(
        self,
        changes: Mapping[str, Mapping[str, str | None]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> "hints.Outcomes[str, None]":
        """Change settings of groups: per group all that is named, or nothing (KIP-339, KIP-848).

        Args:
            changes: group id -> name -> the new value, or None to take the setting back.
            validate_only: only check whether it could be done.
            timeout: seconds that this call may take, instead of those of the client.
        """
        from kohort.client.admin import configs

        arguments.changes(changes)
        return await configs.alter_group_configs(
            self._cluster, changes, validate_only=validate_only, deadline=self._deadline(timeout)
        )

    def list_group_offsets(
        self,
        wanted: str | Iterable[str] | Mapping[str, Iterable[Partition] | None],
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> "OutcomeAnswers[str, hints.GroupOffsets]":
        """Committed offsets of any number of groups: one OffsetFetch per coordinator (KIP-709).

        Brokers below OffsetFetch v8 get a request for each group, and brokers below FindCoordinator
        v4 one for each coordinator; the result is the same.

        Args:
            wanted: a group id or several, for all partitions that have an offset; or a mapping of
                group id -> its partitions as (topic, index), None for all.
            require_stable: wait for open transactions to end (KIP-447). Refused for the groups of
                a broker below OffsetFetch v7.
            timeout: seconds that this call may take, instead of those of the client.

        Returns:
            Per group: partition -> CommittedOffset, None where nothing is committed, or the
            ApiError of this partition alone (UNSTABLE_OFFSET_COMMIT when a transaction is still
            open at the end of the timeout). An unknown group has no offsets; that is no error.
        """
        from kohort.client.admin import offsets

        given: dict[str, list[TopicPartition] | None] = dict.fromkeys(
            arguments.names("wanted", wanted)
        )
        if isinstance(wanted, Mapping):
            for group_id, places in wanted.items():
                what = f"partitions of group {group_id}"
                given[group_id] = None if places is None else arguments.partitions(what, places)
        return self._answers(
            timeout,
            lambda deadline, arrived: offsets.list_group_offsets(
                self._cluster,
                given,
                require_stable=require_stable,
                deadline=deadline,
                arrived=arrived,
            ),
        )

    async def alter_group_offsets(
        self,
        group_id: str,
        new_offsets: "ByPartition[int | hints.CommittedOffset]",
        *,
        timeout: float | None = None,
    ) -> "hints.Outcomes[TopicPartition, None]":
        """Set offsets of a group that has no members (KIP-396): one OffsetCommit.

        A group that does not exist comes into being. One with members refuses every partition
        (UNKNOWN_MEMBER_ID) and changes nothing. Where a partition is refused by itself, the others
        are set. No request is sent twice: when the connection breaks before the answer, the outcome
        is NETWORK_EXCEPTION, and you must look what is committed.

        Args:
            group_id: the group.
            new_offsets: (topic, index) -> the offset of the next record that the group shall read,
                or a CommittedOffset, which may have metadata and a leader epoch (OffsetCommit v6).
            timeout: seconds that this call may take, instead of those of the client.
        """
        from kohort.client.admin import offset_changes

        return await offset_changes.alter_group_offsets(
            self._cluster,
            arguments.name("group_id", group_id),
            arguments.offsets("new_offsets", new_offsets),
            deadline=self._deadline(timeout),
        )

    async def delete_group_offsets(
        self,
        group_id: str,
        partitions: str | Iterable[str | Partition],
        *,
        timeout: float | None = None,
    ) -> "hints.Outcomes[TopicPartition, None]":
        """Take away offsets that a group has committed (KIP-496): one OffsetDelete.

        A topic that a member reads keeps its offsets: GROUP_SUBSCRIBED_TO_TOPIC. To take away what
        is not there is a success. No request is sent twice.

        Args:
            group_id: the group.
            partitions: (topic, index), or a topic for all of its partitions that have an offset:
                those are in the result.
            timeout: seconds that this call may take, instead of those of the client.

        Raises:
            ApiError: the group has no offset of a topic that is named, and there is no such group
                (GROUP_ID_NOT_FOUND) or no such topic. Nothing is deleted then.
        """
        from kohort.client.admin import offset_changes

        return await offset_changes.delete_group_offsets(
            self._cluster,
            arguments.name("group_id", group_id),
            arguments.topics_and_partitions("partitions", partitions),
            deadline=self._deadline(timeout),
        )

    async def plan_offset_reset(
        self,
        group_id: str,
        to: "hints.OffsetReset",
        partitions: str | Iterable[str | Partition] | None = None,
        *,
        timeout: float | None = None,
    ) -> "hints.OffsetResetPlan":
        """Plan where a group goes on reading, as a value: nothing is changed (KIP-122).

            plan = await admin.plan_offset_reset("billing", OffsetReset.earliest(), ["orders"])
            await admin.alter_group_offsets(plan.group_id, plan.offsets)

        Args:
            group_id: the group. One that there is not has the state Dead, and can be reset.
            to: where it goes on.
            partitions: (topic, index), or a topic for all of its partitions; None for those with an
                offset of this group, and where offsets are taken over from others for theirs.
            timeout: seconds that this call may take, instead of those of the client.

        Returns:
            The plan, with what lies ahead of each partition. An error of one partition (it does not
            exist, it has no offset to shift) stays with it. `refusal` says that the group has
            members, so that the plan cannot be applied yet.

        Raises:
            ApiError: the group's coordinator did not answer, or a topic does not exist.
        """
        from kohort.client.admin import offset_planning
        from kohort.client.admin.offset_reset import OffsetReset

        if not isinstance(to, OffsetReset):
            raise TypeError(f"to is {to!r}, expected an OffsetReset, as OffsetReset.earliest()")
        return await offset_planning.plan_offset_reset(
            self._cluster,
            arguments.name("group_id", group_id),
            to,
            None
            if partitions is None
            else arguments.topics_and_partitions("partitions", partitions),
            deadline=self._deadline(timeout),
        )

    async def remove_members(
        self,
        group_id: str,
        members: "str | hints.MemberToRemove | Iterable[str | hints.MemberToRemove] | None" = None,
        *,
        reason: str | None = None,
        timeout: float | None = None,
    ) -> "hints.Outcomes[str | hints.MemberToRemove, None]":
        """Remove members from a group of either protocol (KIP-345, KIP-800): one LeaveGroup.

        A consumer that still runs joins again, as a member of another id: this frees the place of a
        static member that is gone for good. No request is sent twice.

        Args:
            group_id: the group.
            members: instance ids, or a MemberToRemove for a member by its id; None for
                all members that the group has now.
            reason: what the broker's log says, 255 characters at most; LeaveGroup v5 has it.
            timeout: seconds that this call may take, instead of those of the client.

        Returns:
            An outcome for each member, under what was given, or with None under a MemberToRemove. A
            member that there is not is UNKNOWN_MEMBER_ID.

        Raises:
            ApiError: with None, the group cannot be described, or does not exist.
            ValueError: an instance is named twice, as by its id and by a MemberToRemove.
        """
        from kohort.client.admin import member_removal

        arguments.name("group_id", group_id)
        reason = member_removal.checked_reason(reason)
        named = None if members is None else member_removal.named_members("members", members)
        deadline = self._deadline(timeout)
        if named is None:
            found = await member_removal.all_members(self._cluster, group_id, deadline)
            named = {member: member for member in found}
        return await member_removal.remove_members(
            self._cluster, group_id, named, reason, deadline=deadline
        )
