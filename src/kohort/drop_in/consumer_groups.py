# SPDX-License-Identifier: Apache-2.0
"""`kohort-consumer-groups`: kafka-consumer-groups.sh, by the client of Kohort."""

import sys
from collections.abc import Callable, Sequence

from kohort.drop_in.consumer_group_options import OPTIONS, check
from kohort.drop_in.java import JavaError, failed_command
from kohort.drop_in.options import Options
from kohort.drop_in.running import Tool, api_timeout_ms, error_line, line, print_error, run

_TIMEOUT_MS = 30_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code."""
    return run(TOOL, argv)


def _act(options: Options) -> bool:
    check(options)
    if options.has("validate-regex"):
        return _validate(options.value("validate-regex") or "")
    timeout_ms, usual_ms = options.number("timeout"), api_timeout_ms(options, _TIMEOUT_MS)
    return _action(options)(options, usual_ms if timeout_ms is None else timeout_ms)


def _action(options: Options) -> Callable[[Options, int], bool]:
    """What the options ask for. Only its module is imported."""
    if options.has("list"):
        from kohort.drop_in.group_listing import list_groups

        return list_groups
    if options.has("describe"):
        from kohort.drop_in.group_description import describe_groups

        return describe_groups
    if options.has("delete"):
        from kohort.drop_in.group_deletion import delete_groups

        return delete_groups
    if options.has("delete-offsets"):
        from kohort.drop_in.offset_deletion import delete_offsets

        return delete_offsets
    from kohort.drop_in.offset_reset import reset_offsets

    return reset_offsets


def _validate(pattern: str) -> bool:
    from kohort import expressions

    missing = expressions.unavailable_or_none()
    if missing is not None:
        raise JavaError("java.lang.UnsupportedOperationException", missing)
    try:
        expressions.check(pattern)
    except expressions.InvalidExpression as error:
        line(f"The regular expression `{pattern}` is invalid: {error}.")
        return False
    line(f"The regular expression `{pattern}` is valid.")
    return True


def _parse_fails(error: JavaError) -> None:
    error_line(f'Exception in thread "main" {error}')


def _failed(error: JavaError, _words: Sequence[str]) -> None:
    print_error(failed_command(error), error)


TOOL = Tool(
    "kohort-consumer-groups",
    "list, describe and delete consumer groups, reset and delete their offsets",
    OPTIONS,
    _act,
    _parse_fails,
    _failed,
)

if __name__ == "__main__":
    sys.exit(main())
