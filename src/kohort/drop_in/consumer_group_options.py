# SPDX-License-Identifier: Apache-2.0
"""The options of kafka-consumer-groups, and the checks that its Java makes, in their order."""

from collections.abc import Sequence

from kohort.drop_in.options import OPTIONAL, REQUIRED, Option, Options
from kohort.drop_in.running import UsageError, error_line
from kohort.terms import GroupState, GroupType

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
SCENARIOS = (
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
)
OPTIONS = (
    Option("bootstrap-server", "Brokers of the cluster.", REQUIRED, "HOST:PORT[,HOST:PORT]"),
    Option("command-config", "Settings of the connection: Java properties.", REQUIRED, "FILE"),
    Option("timeout", "How long a call may take; 30000.", REQUIRED, "MS"),
    Option("list", "List consumer groups."),
    Option("describe", "Show groups: their offsets, or their members, or their state."),
    Option("delete", "Delete groups without members, and their offsets."),
    Option("reset-offsets", "Change the offsets of groups without members."),
    Option("delete-offsets", "Take away the offsets of topics that nobody in the group reads."),
    Option("validate-regex", "Say whether brokers would take a pattern.", REQUIRED, "PATTERN"),
    Option("group", "A group; may be repeated.", REQUIRED, "GROUP"),
    Option("all-groups", "All consumer groups."),
    Option(
        "topic",
        "A topic, or some of its partitions; may be repeated.",
        REQUIRED,
        "TOPIC[:INDEX[,INDEX]]",
    ),
    Option("all-topics", "All partitions for which the group has an offset."),
    Option("members", "With --describe: the members.", only_with=("describe",)),
    Option("offsets", "With --describe: offsets and lag, as by default.", only_with=("describe",)),
    Option("verbose", "With --describe: more columns.", only_with=("describe",)),
    Option(
        "state",
        "With --describe: the state. With --list: show states, or only groups in these.",
        OPTIONAL,
        "STATE[,STATE]",
        ("describe", "list"),
    ),
    Option(
        "type",
        "With --list: show types, or only groups of these.",
        OPTIONAL,
        "TYPE[,TYPE]",
        ("list",),
    ),
    Option("dry-run", "With --reset-offsets: change nothing, as by default."),
    Option("execute", "With --reset-offsets: do it."),
    Option("export", "With --reset-offsets: print the new offsets as CSV."),
    Option("to-offset", "Reset to this offset.", REQUIRED, "OFFSET"),
    Option("shift-by", "Reset to so many records later, or earlier.", REQUIRED, "COUNT"),
    Option("to-datetime", "Reset to a time.", REQUIRED, "YYYY-MM-DDTHH:MM:SS.SSS"),
    Option("by-duration", "Reset to so long ago.", REQUIRED, "PnDTnHnMnS"),
    Option("to-earliest", "Reset to the first record."),
    Option("to-latest", "Reset to the end."),
    Option("to-current", "Reset to where it is."),
    Option("from-file", "Reset to offsets from a file of CSV.", REQUIRED, "FILE"),
)
_NOT_EXECUTED = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this "
    "command will require either --dry-run or --execute to be specified. You should add the "
    "--dry-run option explicitly if you are scripting this command and want to keep the current "
    "default behavior without prompting."
)
# In the order in which the Java tools happen to print them.
_STATES = (
    GroupState.DEAD,
    GroupState.COMPLETING_REBALANCE,
    GroupState.RECONCILING,
    GroupState.STABLE,
    GroupState.ASSIGNING,
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
)
_TYPES = (GroupType.CONSUMER, GroupType.CLASSIC)


def check(options: Options) -> None:
    """Raises UsageError."""
    if not options.has("validate-regex") or options.any_of(*ACTIONS[:-1]):
        require(options, "bootstrap-server")
    _check_describe(options)
    _check_delete(options)
    if options.has("delete-offsets") and not (options.has("group") and options.has("topic")):
        raise UsageError("Option [delete-offsets] takes the following options: [topic], [group]")
    _check_reset(options)
    exclude(options, "group", ("all-groups", "list"))
    exclude(options, "topic", ("list", "describe"))
    if sum(map(options.has, ACTIONS)) != 1:
        named = ", ".join(f"--{action}" for action in ACTIONS)
        raise UsageError(f"Command must include exactly one action: {named}")


def _check_describe(options: Options) -> None:
    if not options.has("describe"):
        return
    _need_groups(options, "describe")
    if sum(map(options.has, ("members", "offsets", "state"))) > 1:
        raise UsageError(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    if options.values("state"):
        raise UsageError("Option [describe] does not take a value for [state]")


def _check_delete(options: Options) -> None:
    if not options.has("delete"):
        return
    _need_groups(options, "delete")
    if options.has("topic"):
        raise UsageError(
            "The consumer does not support topic-specific offset deletion from a consumer group."
        )


def _check_reset(options: Options) -> None:
    if not options.has("reset-offsets"):
        return
    if options.has("dry-run") and options.has("execute"):
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not options.any_of("dry-run", "execute"):
        error_line(_NOT_EXECUTED)
    _need_groups(options, "reset-offsets")
    for scenario in (
        *("to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current"),
        *("shift-by", "from-file"),
    ):
        exclude(options, scenario, [other for other in SCENARIOS if other != scenario])


def _need_groups(options: Options, action: str) -> None:
    if not options.any_of("group", "all-groups"):
        raise UsageError(f"Option [{action}] takes one of these options: [group], [all-groups]")


def require(options: Options, *names: str) -> None:
    """Raises UsageError for the first one that is not there."""
    for name in names:
        if not options.has(name):
            raise UsageError(f'Missing required argument "[{name}]"')


def exclude(options: Options, name: str, others: Sequence[str]) -> None:
    """Raises UsageError where one of the others stands beside it."""
    for other in others:
        if options.has(name) and options.has(other):
            raise UsageError(f'Option "[{name}]" can\'t be used with option "[{other}]"')


def states_of(text: str | None) -> list[GroupState]:
    """The states of a filter. Raises UsageError."""
    by_name = {state.value.lower(): state for state in _STATES}
    names = _words(text)
    if any(name not in by_name for name in names):
        valid = ", ".join(state.value for state in _STATES)
        raise UsageError(f"Invalid state list '{text}'. Valid states are: {valid}")
    return [by_name[name] for name in names]


def types_of(text: str | None) -> list[GroupType]:
    """The types of a filter. Raises UsageError."""
    by_name = {type_.value: type_ for type_ in _TYPES}
    names = _words(text)
    if any(name not in by_name for name in names):
        valid = ", ".join(type_.value.capitalize() for type_ in _TYPES)
        raise UsageError(f"Invalid types list '{text}'. Valid types are: {valid}")
    return [by_name[name] for name in names]


def _words(text: str | None) -> list[str]:
    """As Java splits them: no empty words at the end."""
    if not text:
        return []
    words = [word.strip().lower() for word in text.split(",")]
    while words and not words[-1]:
        words.pop()
    return words
