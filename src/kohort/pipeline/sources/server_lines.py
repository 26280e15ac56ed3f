# SPDX-License-Identifier: Apache-2.0
"""Lines of a Kafka broker's log file about members that are gone, and about the epoch or generation
that came of it.

Ids of groups and members may contain anything, such as brackets, words of these lines, and line
breaks. So a line counts if it can be read in one way only, from its clock to the name of its
logger, and if the line before was whole.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from kohort.history.rows import LEAVE, REBALANCE_TIMEOUT, SESSION_TIMEOUT

MOST_WAITING = 10_000
"""For how many groups lines are kept whose number is not known yet."""
LONGEST_LINE = 1 << 16
"""What is longer is no line that matters, and is not held in memory."""
_SIGN = b"roup"  # in every line that matters
_SHAPE = re.compile(
    r"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d{3})\d*\]?\s+[A-Z]+\s+(.*)\s\(([\w.$]+)\)"
)
_WHOLE = re.compile(rb"\[?\d{4}-\d\d-\d\d[ T][^\n]* \([\w.$]+\)\r?")
_LOGGERS = ("coordinator.group.GroupMetadataManager", "coordinator.group.GroupCoordinator")
_SPEAKER = re.compile(r"\[GroupCoordinator [^\]\s]*(?: topic=\S+ partition=\d+)?\]:? ")
_LEAVES = " has left group through explicit `LeaveGroup` request; client reason: "
_COMMA = ", "
_MADE = re.compile(
    r".*-[0-9A-Za-z_-]{22}|.*-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.DOTALL
)
_NO_REASON = "not provided"
_STAYS = ""
"""Instead of a trigger: the member is not gone."""


class Form(NamedTuple):
    """A line: fixed text, and between it what is told."""

    texts: tuple[str, ...]
    fields: tuple[str, ...]
    """What stands behind each text; the last text ends the line where there are more of them."""
    trigger: str


_FENCED = ("[GroupId ", "] Member ", " fenced from the group because ")
FORMS = (
    # Kafka 4: groups of the consumer protocol.
    Form(("[GroupId ", "] Member ", " left the consumer group."), ("group", "member"), LEAVE),
    Form(
        (
            "[GroupId ",
            "] Static member ",
            " with instance id ",
            " temporarily left the consumer group.",
        ),
        ("group", "member", "instance"),
        _STAYS,
    ),
    Form(
        ("[GroupId ", "] Static member ", " with instance id ", " left the consumer group."),
        ("group", "member", "instance"),
        LEAVE,
    ),
    Form(
        (*_FENCED[:2], f"{_FENCED[2]}the member session expired."),
        ("group", "member"),
        SESSION_TIMEOUT,
    ),
    Form(
        (*_FENCED[:2], f"{_FENCED[2]}it failed to transition from epoch ", " within ", "ms."),
        ("group", "member", "", ""),
        REBALANCE_TIMEOUT,
    ),
    *(
        Form((*_FENCED[:2], f"{_FENCED[2]}{why}."), ("group", "member"), REBALANCE_TIMEOUT)
        for why in (
            "the classic member failed to join within the rebalance timeout",
            "the member failed to sync within timeout",
        )
    ),
    Form(("[GroupId ", "] Dynamic member ", _LEAVES), ("group", "member", "reason"), LEAVE),
    Form(
        ("[GroupId ", "] Static member ", " with instance id ", _LEAVES),
        ("group", "member", "instance", "reason"),
        LEAVE,
    ),
    # Kafka 4: groups of the classic protocol.
    Form(("[Group ", "] Member ", _LEAVES), ("group", "member", "reason"), LEAVE),
    Form(
        ("Member ", " in group ", " has failed, removing it from the group."),
        ("member", "group"),
        SESSION_TIMEOUT,
    ),
    *(
        Form(("Group ", f" removed {whom}: {begin}", end), ("group", "members"), REBALANCE_TIMEOUT)
        for whom in (
            "dynamic members who haven't joined",
            "members who haven't sent their sync requests",
        )
        for begin, end in (("[", "]"), ("Set(", ")"))  # Kafka 3 says it in Scala
    ),
    # Kafka up to 3.
    Form(
        (
            "Member MemberMetadata(memberId=",
            ", groupInstanceId=",
            ") has left group ",
            " through explicit `LeaveGroup`; client reason: ",
        ),
        ("member", "", "group", "reason"),
        LEAVE,
    ),
    Form(
        (
            "Member[group.instance.id ",
            ", member.id ",
            "] in group ",
            " has left, removing it from the group",
        ),
        ("", "member", "group"),
        LEAVE,
    ),
    Form(
        ("Member ", " in group ", " has failed, removing it from the group"),
        ("member", "group"),
        SESSION_TIMEOUT,
    ),
)
_STATES = r" in state \w+ with old generation (\d+) (?:\(\S+\) )?\(reason: "
_DIGITS, _HIGHEST = 10, 2**31 - 1
_NUMBERS = (
    (re.compile(r"\[GroupId (.+)\] Bumped group epoch to (\d+) with metadata hash -?\d+\."), 0),
    (re.compile(rf"Preparing to rebalance group (.+){_STATES}.*\)\.?"), 1),
    (re.compile(r"Stabilized group (.+) generation (\d+) (?:\(\S+\) )?with \d+ members\.?"), 0),
    (re.compile(r"Group (.+) with generation (\d+) (?:\(\S+\) )?is now empty\.?"), 0),
)
"""Texts with the group and a number, and what is to be added to that number."""


class MemberRemoval(NamedTuple):
    """A line about a member that is gone."""

    group_id: str
    member_id: str
    trigger: str
    reason: str | None
    clock_us: int
    """As if the zone of its clock were UTC."""
    number: int | None
    """Epoch or generation that the file names next for the group."""


def parse_removals(lines: Iterable[bytes]) -> Iterator[MemberRemoval]:
    """The lines of a file that matter, one after the other. None is kept for longer than until the
    group's number is known.
    """
    waiting: dict[str, list[MemberRemoval]] = {}
    before, line = b"", b""
    for following in lines:
        before, line = line, following
        if _SIGN not in line or (before and not _is_whole(before)):
            continue
        if len(line) >= LONGEST_LINE:  # a piece of a longer one, or of a forged one
            continue
        found = _message(line)
        if found is None:
            continue
        clock_us, text = found
        numbered = _number(text)
        if numbered is not None:
            group_id, number = numbered
            yield from (waited._replace(number=number) for waited in waiting.pop(group_id, ()))
            continue
        for removal in _removals(text, clock_us):
            waiting.setdefault(removal.group_id, []).append(removal)
        if len(waiting) > MOST_WAITING:
            yield from waiting.pop(next(iter(waiting)))
    for left in waiting.values():
        yield from left


def _is_whole(line: bytes) -> bool:
    return line.endswith(b"\n") and _WHOLE.fullmatch(line.rstrip(b"\n")) is not None


def _message(line: bytes) -> tuple[int, str] | None:
    try:
        text = line.decode()
    except UnicodeDecodeError:  # an id that cannot be told from others
        return None
    shape = _SHAPE.fullmatch(text.rstrip("\r\n"))
    if shape is None or not shape[3].endswith(_LOGGERS):
        return None
    try:
        at = datetime.fromisoformat(shape[1].replace(",", ".")).replace(tzinfo=UTC)
    except ValueError:
        return None
    message = shape[2]
    speaker = _SPEAKER.match(message)
    return round(at.timestamp() * 1_000_000), message[speaker.end() if speaker else 0 :]


def _number(text: str) -> tuple[str, int] | None:
    for pattern, more in _NUMBERS:
        found = pattern.fullmatch(text)
        if found is not None and len(found[2]) <= _DIGITS:
            number = int(found[2]) + more
            return (found[1], number) if number <= _HIGHEST else None
    return None


def _removals(text: str, clock_us: int) -> Iterator[MemberRemoval]:
    for form in FORMS:
        fields = _match_form(text, form)
        if fields is not None:
            if form.trigger == _STAYS:
                return
            reason = fields.get("reason")
            reason = None if reason in {None, "", _NO_REASON} else reason
            members = _listed(fields["members"]) if "members" in fields else [fields["member"]]
            for member_id in members:
                yield MemberRemoval(
                    fields["group"], member_id, form.trigger, reason, clock_us, None
                )
            return


def _listed(members: str) -> list[str]:
    """The members of a list; none if it can be read in several ways. An id that a coordinator makes
    ends with a UUID, so a piece that does not may be the beginning of the next.
    """
    pieces = members.split(_COMMA)
    alone = len(pieces) == 1
    return pieces if alone or all(_MADE.fullmatch(piece) for piece in pieces) else []


def _match_form(text: str, form: Form) -> dict[str, str] | None:
    """What stands between the texts of a form; None if it is another form, or if it can be read in
    several ways.
    """
    first, *others = form.texts
    if not text.startswith(first):
        return None
    rest = text[len(first) :]
    closes = len(form.texts) > len(form.fields)
    if closes:
        if not rest.endswith(others[-1]):
            return None
        rest = rest[: len(rest) - len(others[-1])]
        others = others[:-1]
    values = []
    for separator in others:
        before, found, rest_after = rest.partition(separator)
        if not found or separator in rest_after:
            return None
        values.append(before)
        rest = rest_after
    values.append(rest)
    fields = dict(zip(form.fields, values, strict=True))
    return {name: value for name, value in fields.items() if name}
