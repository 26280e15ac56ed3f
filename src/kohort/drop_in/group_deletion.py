# SPDX-License-Identifier: Apache-2.0
"""`kafka-consumer-groups --delete`: groups without members, and their offsets."""

from typing import TYPE_CHECKING

from kohort.drop_in.group_listing import consumer_groups
from kohort.drop_in.java import JavaError, in_future, of_code, of_error
from kohort.drop_in.options import Options
from kohort.drop_in.orders import by_name
from kohort.drop_in.running import ask, line, no_node, print_error
from kohort.errors import ErrorCode

if TYPE_CHECKING:  # the client is imported when a tool asks
    from kohort.client.admin import AdminClient
    from kohort.client.admin.views import Outcomes

_BARE = (ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND)  # texts of our own are left out


def delete_groups(options: Options, timeout_ms: int) -> bool:
    """Whether all are deleted. Raises JavaError."""

    async def asked(admin: "AdminClient") -> "Outcomes[str, None]":
        names = options.values("group")
        if options.has("all-groups"):
            names = [group.group_id for group in await consumer_groups(admin)]
        return await admin.delete_groups(names)

    found = ask(options, asked, timeout_ms=timeout_ms, unreachable=_unreachable)
    deleted = ", ".join(f"'{name}'" for name in by_name(found.succeeded))
    if not found.failed:
        line(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return True
    print_error("Deletion of some consumer groups failed:")
    errors = found.failed
    for name in by_name(errors):
        error = errors[name]
        why = of_code(error.code) if error.code in _BARE else of_error(error)
        line(f"* Group '{name}' could not be deleted due to: {why}")
    if deleted:
        line(f"These consumer groups were deleted successfully: {deleted}", before="\n")
    return False


def _unreachable(why: JavaError | None) -> JavaError:
    return in_future(no_node("deleteConsumerGroups(api=FIND_COORDINATOR)", why))
