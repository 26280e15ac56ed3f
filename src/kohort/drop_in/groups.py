# SPDX-License-Identifier: Apache-2.0
"""`kohort-groups`: kafka-groups.sh, which lists groups of all types."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kohort.drop_in.consumer_group_options import exclude
from kohort.drop_in.group_listing import type_text, unreachable
from kohort.drop_in.java import JavaError, illegal, in_future, of_error
from kohort.drop_in.options import REQUIRED, Option, Options
from kohort.drop_in.orders import by_name
from kohort.drop_in.running import Tool, UsageError, api_timeout_ms, ask, error_line, line, run
from kohort.drop_in.tables import filled, widest
from kohort.terms import CONSUMER_PROTOCOLS, GroupType

if TYPE_CHECKING:  # the client is imported when a tool asks
    from kohort.client.admin import AdminClient
    from kohort.client.admin.views import GroupListing, Listings

_TIMEOUT_MS = 60_000
_LEAST = 20
OPTIONS = (
    Option(
        "bootstrap-server",
        "Brokers of the cluster.",
        REQUIRED,
        "HOST:PORT[,HOST:PORT]",
        needed=True,
    ),
    Option("command-config", "Settings of the connection: Java properties.", REQUIRED, "FILE"),
    Option("list", "List the groups."),
    Option("group-type", "Only this type: classic, consumer, share, streams.", REQUIRED, "TYPE"),
    Option("protocol", "Only this protocol type, as consumer or connect.", REQUIRED, "PROTOCOL"),
    Option("consumer", "Only groups of consumers, of whatever protocol."),
    Option("share", "Only share groups."),
    Option("streams", "Only streams groups."),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code."""
    return run(TOOL, argv)


def _act(options: Options) -> bool:
    if not options.has("list"):
        raise UsageError("Command must include exactly one action: --list.")
    wanted = options.value("group-type")
    if wanted is not None and wanted.lower() not in [each.value for each in GroupType]:
        raise _ArgumentError(illegal("--group-type must be a valid group type."))
    kinds = ("consumer", "share", "streams")
    for kind in kinds:
        exclude(
            options, kind, ["group-type", "protocol", *(each for each in kinds if each != kind)]
        )

    async def asked(admin: "AdminClient") -> "Listings":
        return await admin.list_groups()

    found = ask(
        options, asked, timeout_ms=api_timeout_ms(options, _TIMEOUT_MS), unreachable=unreachable
    )
    for error in found.errors.values():
        raise in_future(of_error(error))
    groups = {group.group_id: group for group in found}
    rows = [
        (group.group_id, type_text(group) if group.type else "", group.protocol_type)
        for group in map(groups.__getitem__, by_name(groups))
        if _is_wanted(group, options)
    ]
    width = widest(_LEAST, (cell for row in rows for cell in row))
    line(filled(("GROUP", "TYPE", "PROTOCOL"), [width] * 3))
    for row in rows:
        line(filled((*row, ""), [width] * 3))
    return True


def _is_wanted(group: "GroupListing", options: Options) -> bool:
    wanted, protocol = options.value("group-type"), options.value("protocol")
    if wanted is not None or protocol is not None:
        return (wanted is None or group.type == wanted.lower()) and (
            protocol is None or group.protocol_type == protocol
        )
    if options.has("consumer"):
        return group.protocol_type in CONSUMER_PROTOCOLS or group.type == GroupType.CONSUMER
    if options.has("share"):
        return group.type == GroupType.SHARE
    return not options.has("streams") or group.type == GroupType.STREAMS


class _ArgumentError(JavaError):
    """An error that is raised before anything is asked: it goes to stderr alone."""

    def __init__(self, error: JavaError) -> None:
        super().__init__(error.name, error.text)


def _parse_fails(error: JavaError) -> None:
    raise UsageError(error.text)


def _failed(error: JavaError, _words: Sequence[str]) -> None:
    if isinstance(error, _ArgumentError):
        error_line(error.text)
        for traced in error.trace():
            error_line(traced)
        error_line("")
        return
    shown = error.cause or error
    line(f"Error while executing groups command : {shown.text}")
    for traced in shown.trace():
        error_line(traced)


TOOL = Tool(
    "kohort-groups",
    "list groups of all types",
    OPTIONS,
    _act,
    _parse_fails,
    _failed,
    java_fails=True,
)

if __name__ == "__main__":
    sys.exit(main())
