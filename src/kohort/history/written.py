# SPDX-License-Identifier: Apache-2.0
"""Causes that the coordinator itself has written into the headers of a record. They are a proof,
where everything else is a conclusion.
"""

from collections.abc import Iterable, Mapping

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
    Who,
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
"""Cause -> its name in the tables. The other causes begin no rebalance."""
OF_REMOVALS = {LEAVE, SESSION_TIMEOUT, REBALANCE_TIMEOUT}


def note(rebalance: Rebalance, causes: Iterable[Because], there: Iterable[Who]) -> None:
    """Take over what the record that names an epoch or a generation says about its cause. The
    members that are there then are looked at where it has one.
    """
    named: dict[str, Who] | None = None
    for cause in causes:
        trigger = TRIGGER_OF.get(cause.cause)  # type: ignore[call-overload]
        if trigger is None:
            continue
        if named is None:
            gone = (removal.who for removal in rebalance.removals)
            named = {who.member_id: who for who in (*gone, *there)}
        rebalance.written.append(trigger)
        rebalance.said.append(_text(cause, named))
        for removal in rebalance.removals:
            if removal.who.member_id == cause.member_id:
                settle(removal, [cause])


def without_follow_up(rebalance: Rebalance) -> None:
    """A cooperative member that has given partitions up joins with other metadata. The coordinator
    cannot tell that from another subscription, and calls it one; comparing the generations can.
    """
    rebalance.written = [trigger for trigger in rebalance.written if trigger != SUBSCRIPTION_CHANGE]


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
        named = {removal.who.member_id: removal.who}
        rebalance.said += [_text(cause, named) for cause in causes]


def _text(cause: Because, named: Mapping[str, Who]) -> str:
    who = named.get(cause.member_id or "")
    name = cause.member_id if who is None else who.in_words
    member = f" of {name}" if name else ""
    reason = f" ({cause.reason})" if cause.reason else ""
    return f"the coordinator wrote: {cause.cause}{member}{reason}"
