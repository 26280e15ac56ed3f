# SPDX-License-Identifier: Apache-2.0
"""`kafka-consumer-groups --list`: consumer groups of both protocols, and no others."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kohort.drop_in.consumer_group_options import states_of, types_of
from kohort.drop_in.java import FUTURE, JavaError, at_run_time, in_future, of_error
from kohort.drop_in.options import Options
from kohort.drop_in.orders import by_name
from kohort.drop_in.running import ask, line, no_node
from kohort.drop_in.tables import filled, widest
from kohort.terms import CONSUMER_PROTOCOLS, GroupState, GroupType

if TYPE_CHECKING:  # the client is imported when a tool asks
    from kohort.client.admin import AdminClient
    from kohort.client.admin.views import GroupListing

_LEAST = 15
_GAP = 10
_REST = 20


def list_groups(options: Options, timeout_ms: int) -> bool:
    """Raises JavaError and UsageError."""
    with_type, with_state = options.has("type"), options.has("state")
    types, states = types_of(options.value("type")), states_of(options.value("state"))

    async def asked(admin: "AdminClient") -> "list[GroupListing]":
        return await consumer_groups(admin, states, types)

    try:
        found = ask(options, asked, timeout_ms=timeout_ms, unreachable=unreachable)
    except JavaError as error:
        if with_type or with_state or error.name != FUTURE:
            raise
        raise at_run_time(error) from None
    if not with_type and not with_state:
        for group in found:
            line(group.group_id)
        return True
    widths = [widest(_LEAST, (group.group_id for group in found)) + _GAP]
    widths += [_REST] * (with_type + with_state)
    heads = ["GROUP", *(["TYPE"] if with_type else []), *(["STATE"] if with_state else [])]
    line(filled(heads, widths))
    for group in found:
        cells = [group.group_id]
        cells += [type_text(group)] if with_type else []
        cells += [str(group.state or "Unknown")] if with_state else []
        line(filled(cells, widths))
    return True


def type_text(group: "GroupListing") -> str:
    """The type as the Java tools spell it; Unknown where the broker is too old to tell."""
    return str(group.type).capitalize() if group.type else "Unknown"


async def consumer_groups(
    admin: "AdminClient",
    states: Sequence[GroupState] = (),
    types: Sequence[GroupType] = (),
) -> "list[GroupListing]":
    """The groups of consumers, in the order of the Java tools. Raises JavaError where a broker did
    not answer.
    """
    # Without a filter of types a broker that is too old for one can answer, too.
    wanted = None if not types or list(types) == [GroupType.CLASSIC] else types
    found = await admin.list_groups(states=states or None, types=wanted)
    for error in found.errors.values():
        raise in_future(of_error(error))
    groups = {
        group.group_id: group
        for group in found
        if group.protocol_type in CONSUMER_PROTOCOLS
        and group.type in (types or (GroupType.CLASSIC, GroupType.CONSUMER, None))
    }
    return [groups[name] for name in by_name(groups)]


def unreachable(why: JavaError | None) -> JavaError:
    """What the Java tools say where no broker answers when groups are listed."""
    text = "Failed to find brokers to send ListGroups"
    cause = JavaError(
        "org.apache.kafka.common.KafkaException", text, no_node("findAllBrokers", why)
    )
    return in_future(cause)
