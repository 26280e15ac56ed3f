# SPDX-License-Identifier: Apache-2.0
"""ConsumerGroupInstallAssignment: the member that was asked delivers its result (KIP-848).

What fits the group as the member was told of it becomes the target of that epoch, and is reconciled
as any other. The group may have moved on meanwhile: then the next computation begins at once.
"""

from kohort.coordinator.consumer import planning
from kohort.coordinator.consumer.client_side import choosing, validation
from kohort.coordinator.consumer.client_side.computation import Basis, Computation
from kohort.coordinator.consumer.client_side.prepare import claimed
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import Member
from kohort.coordinator.consumer.target import NOTHING, Attachment, Target
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, GroupEvent, Reply
from kohort.records import schemas
from kohort.terms import MemberId, Millis, TopicId
from kohort.wire.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentResponse,
)


def install(
    state: State, call: Call[ConsumerGroupInstallAssignmentRequest], now: Millis
) -> Effects:
    """Take an assignment, or the error of the assignor. After a refusal for what it holds, the
    member may prepare and install again. Raises ApiError.
    """
    request = call.request
    group, member = claimed(state, request)
    computation = choosing.outstanding(state, group, member)
    basis = computation.basis
    if basis is None:
        raise _not_prepared(member, "nothing", request.group_epoch)
    _check_prepared(member, basis, request.group_epoch)
    if request.error:
        targets = _as_before(group, request.error, computation.assignor)
    else:
        wrong = validation.describe_problems(request.members, basis, state.record_limit())
        if wrong:
            state.counters.computations_invalid += 1
            raise ApiError(ErrorCode.INVALID_ASSIGNMENT, wrong)
        computed = _computed(request, basis, computation.assignor)
        targets = planning.of_present(group, basis.instances, computed)
    asked_at = now if computation.asked_at is None else computation.asked_at
    took_ms = min(max(now - asked_at, 0), (1 << 31) - 1)
    by = schemas.Computation(
        assignor=computation.assignor,
        member_id=member.id,
        reason=computation.reason,
        error=request.error,
        took_ms=took_ms,
        why="",
    )
    records = planning.target_records(group, targets, basis.epoch, now, by)
    if request.error:
        state.counters.computations_failed += 1
    else:
        state.counters.computations_installed += 1
    event = GroupEvent(group.id, _describe_computation(computation, basis, request.error, took_ms))
    return Effects(records, [Reply(call.token, ConsumerGroupInstallAssignmentResponse())], [event])


def _check_prepared(member: Member, basis: Basis, epoch: int) -> None:
    """Raise ApiError for an assignment of another epoch than the one that was prepared last."""
    if basis.epoch != epoch:
        raise _not_prepared(member, f"epoch {basis.epoch}", epoch)


def _not_prepared(member: Member, prepared: str, epoch: int) -> ApiError:
    return ApiError(
        ErrorCode.STALE_MEMBER_EPOCH,
        f"member {member.id} has prepared {prepared}, request says epoch {epoch}",
    )


def _computed(
    request: ConsumerGroupInstallAssignmentRequest, basis: Basis, assignor: str
) -> dict[MemberId, Target]:
    """The target of each member that was prepared. Who is not named gets nothing."""
    targets = dict.fromkeys(basis.reads, Target({}, Attachment(assignor=assignor)))
    for member in request.members:
        partitions: dict[TopicId, tuple[int, ...]] = {}
        for part in member.partitions:
            topic_id = TopicId(part.topic_id)
            together = {*partitions.get(topic_id, ()), *part.partitions}
            if together:
                partitions[topic_id] = tuple(sorted(together))
        attachment = Attachment(0, member.metadata_version, member.metadata_bytes, assignor)
        targets[MemberId(member.member_id)] = Target(partitions, attachment)
    return targets


def _as_before(group: ConsumerGroup, error: int, assignor: str) -> dict[MemberId, Target]:
    """The assignor has failed: members keep what they were meant to have, and hear of it."""
    targets = {}
    for member_id in group.members:
        known = group.targets.get(member_id, NOTHING)
        attachment = (known.attachment or Attachment(assignor=assignor))._replace(error=error)
        targets[member_id] = Target(known.partitions, attachment)
    return targets


def _describe_computation(computation: Computation, basis: Basis, error: int, took_ms: int) -> str:
    text = f"member {computation.member_id} has computed the assignment of epoch {basis.epoch}"
    if error:
        text = f"assignor of member {computation.member_id} has failed with error {error}"
    return f"{text} by assignor {computation.assignor} in {took_ms} ms"
