"""Causes that the coordinator itself has written into the headers of a record: proof, where the
rest can only be concluded.
"""

from collections.abc import Iterable

from kohort.history.rows import (
    ASSIGNOR_CHANGE,
    JOIN,
    LEAVE,
    METADATA_CHANGE,
    MIGRATION,
    REBALANCE_TIMEOUT,
    REJOIN,
    SESSION_TIMEOUT,
    SUBSCRIPTION_CHANGE,
)
from kohort.history.state import Rebalance, Removal
from kohort.records.causes import Because, Cause

TRIGGER_OF = {
    Cause.JOIN: JOIN,
    Cause.LEAVE: LEAVE,
    Cause.KICKED: LEAVE,
    Cause.SESSION: SESSION_TIMEOUT,
    Cause.REBALANCE: REBALANCE_TIMEOUT,
    Cause.SUBSCRIPTION: SUBSCRIPTION_CHANGE,
    Cause.ASSIGNOR: ASSIGNOR_CHANGE,
    Cause.TOPICS: METADATA_CHANGE,
    Cause.REJOIN: REJOIN,
    Cause.MIGRATION: MIGRATION,
}
"""Cause -> what the tables call it. The others begin no rebalance."""
OF_REMOVALS = {LEAVE, SESSION_TIMEOUT, REBALANCE_TIMEOUT}


def note(rebalance: Rebalance, causes: Iterable[Because]) -> None:
    """What the record that names an epoch or a generation says about why."""
    for cause in causes:
        trigger = TRIGGER_OF.get(cause.cause)  # type: ignore[call-overload]
        if trigger is None:
            continue
        rebalance.written.append(trigger)
        rebalance.said.append(_text(cause))
        for removal in rebalance.removals:
            if removal.who.member_id == cause.member_id:
                settle(removal, [cause])


def without_follow_up(rebalance: Rebalance) -> None:
    """A cooperative member that has given partitions up joins with other metadata. The coordinator
    cannot tell that from another subscription, and calls it one; the generations can.
    """
    rebalance.written = [one for one in rebalance.written if one != SUBSCRIPTION_CHANGE]


def settle(removal: Removal, causes: Iterable[Because]) -> None:
    """What is written about the end of a member rules out everything else."""
    for cause in causes:
        trigger = TRIGGER_OF.get(cause.cause)  # type: ignore[call-overload]
        if trigger in OF_REMOVALS and cause.member_id in {None, removal.who.member_id}:
            removal.possible, removal.settled = [trigger], True


def note_end(rebalance: Rebalance, removal: Removal, causes: Iterable[Because]) -> None:
    """What an earlier record has said about the end of a member that this rebalance is about."""
    causes = list(causes)
    settle(removal, causes)
    if removal.settled:
        rebalance.said += [_text(one) for one in causes]


def _text(one: Because) -> str:
    member = f" of {one.member_id}" if one.member_id else ""
    reason = f" ({one.reason})" if one.reason else ""
    return f"the coordinator wrote: {one.cause}{member}{reason}"
