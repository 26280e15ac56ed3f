# SPDX-License-Identifier: Apache-2.0
"""`kohort-configs`: kafka-configs.sh, for the settings of groups."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kohort.drop_in.consumer_group_options import exclude
from kohort.drop_in.group_listing import unreachable
from kohort.drop_in.java import JavaError, illegal, in_future, of_error
from kohort.drop_in.options import REQUIRED, Option, Options
from kohort.drop_in.running import Tool, UsageError, api_timeout_ms, ask, error_line, line, run

if TYPE_CHECKING:  # the client is imported when a tool asks
    from kohort.client.admin import AdminClient, ConfigEntry

_TIMEOUT_MS = 60_000
_TYPES = (
    *("topics", "clients", "users", "brokers", "ips", "client-metrics", "groups"),
    "broker-loggers",
)
_OTHERS = ("topic", "client", "user", "broker", "broker-logger", "ip", "client-metrics")
_BETWEEN_CONFIGS = re.compile(r",(?=[^\]]*(?:\[|$))")  # not within brackets
OPTIONS = (
    Option("bootstrap-server", "Brokers of the cluster.", REQUIRED, "HOST:PORT[,HOST:PORT]"),
    Option("command-config", "Settings of the connection: Java properties.", REQUIRED, "FILE"),
    Option("entity-type", "What the settings are of: groups.", REQUIRED, "TYPE"),
    Option("entity-name", "The group.", REQUIRED, "GROUP"),
    Option("group", "The same in one option.", REQUIRED, "GROUP"),
    Option("describe", "Show what is set for the group, or for every group."),
    Option("all", "With --describe: also what the broker sets for it."),
    Option("alter", "Change settings of the group."),
    Option(
        "add-config",
        "With --alter: settings, as name=value,name=[value,value].",
        REQUIRED,
        "NAME=VALUE[,NAME=VALUE]",
    ),
    Option("add-config-file", "The same from a file of Java properties.", REQUIRED, "FILE"),
    Option("delete-config", "With --alter: settings to take back.", REQUIRED, "NAME[,NAME]"),
    *(Option(name, "Not here: use kafka-configs.sh.", REQUIRED, "NAME") for name in _OTHERS),
)
_Configs = Mapping[str, "dict[str, ConfigEntry]"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code."""
    return run(TOOL, argv)


def _act(options: Options) -> bool:
    if options.has("describe") == options.has("alter"):
        raise UsageError("Command must include exactly one action: --describe, --alter")
    _check_types(options)
    _check_server(options)
    group = _group(options)
    if options.has("describe"):
        return _describe(options, group)
    if group is None:
        raise illegal("An entity name must be specified with --alter of groups")
    if not options.any_of("add-config", "add-config-file", "delete-config"):
        raise illegal(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified "
            "with --alter"
        )
    exclude(options, "add-config", ("add-config-file",))
    return _alter(options, group)


def _check_types(options: Options) -> None:
    """Raises JavaError for a type that is given twice: `--group` gives one as well."""
    kinds = [*options.values("entity-type"), *(["groups"] if options.has("group") else [])]
    again = [kind for at, kind in enumerate(kinds) if kind in kinds[:at]]
    if again:
        raise illegal(f"Duplicate entity type(s) specified: {','.join(again)}")


def _check_server(options: Options) -> None:
    if not options.has("bootstrap-server"):
        raise illegal("Either --bootstrap-server or --bootstrap-controller must be specified.")


def _group(options: Options) -> str | None:
    """The group; None for all. Raises JavaError for what has settings and is no group."""
    kind = options.value("entity-type")
    if kind is not None and kind not in _TYPES:
        raise illegal(
            f"Invalid entity type {kind}, the entity type must be one of {', '.join(_TYPES)} with "
            "a --bootstrap-server or --bootstrap-controller argument"
        )
    other = next((f"--{name}" for name in _OTHERS if options.has(name)), None)
    if kind not in (None, "groups"):
        other = f"--entity-type {kind}"
    if other is not None:
        raise illegal(f"{other} is not served here, expected groups: use kafka-configs.sh")
    if kind is None and not options.has("group"):
        raise illegal(
            "At least one entity type must be specified: use --entity-type groups, or --group"
        )
    if options.has("group"):
        return options.value("group")
    names = options.values("entity-name")
    return names[0] if names else None  # of several as the Java tool


def _describe(options: Options, group: str | None) -> bool:
    async def asked(admin: "AdminClient") -> _Configs:
        found = await admin.list_groups()
        for error in found.errors.values():
            raise in_future(of_error(error))
        configured = {each.name for each in await admin.list_config_resources(["group"])}
        names = {each.group_id for each in found} | configured
        wanted = sorted(names)
        if group is not None:
            wanted = [group] if group in names or options.has("all") else []
        outcomes = await admin.describe_configs(
            [("group", name) for name in wanted], include_synonyms=True
        )
        for error in outcomes.failed.values():
            raise in_future(of_error(error))
        return {resource.name: entries for resource, entries in outcomes.succeeded.items()}

    found = ask(
        options, asked, timeout_ms=api_timeout_ms(options, _TIMEOUT_MS), unreachable=unreachable
    )
    if group is not None and group not in found:
        line(f"The group '{group}' doesn't exist and doesn't have dynamic config.")
    for name, entries in found.items():
        which = "All" if options.has("all") else "Dynamic"
        line(f"{which} configs for group {name} are:")
        for entry in entries.values():
            if options.has("all") or entry.source.name == "DYNAMIC_GROUP_CONFIG":
                line(f"  {_entry_text(entry)}")
    return True


def _entry_text(entry: "ConfigEntry") -> str:
    value = "null" if entry.value is None else entry.value
    synonyms = ", ".join(
        f"{each.source.name}:{each.name}={'null' if each.value is None else each.value}"
        for each in entry.synonyms or ()
    )
    sensitive = str(entry.sensitive).lower()
    return f"{entry.name}={value} sensitive={sensitive} synonyms={{{synonyms}}}"


def _alter(options: Options, group: str) -> bool:
    changes: dict[str, str | None] = dict.fromkeys(_names(options.values("delete-config")))
    changes |= _added(options)

    async def asked(admin: "AdminClient") -> None:
        outcomes = await admin.alter_configs({("group", group): changes})
        for error in outcomes.failed.values():
            raise in_future(of_error(error))

    ask(options, asked, timeout_ms=api_timeout_ms(options, _TIMEOUT_MS), unreachable=unreachable)
    line(f"Completed updating config for group {group}.")
    return True


def _names(given: Iterable[str]) -> list[str]:
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def _added(options: Options) -> dict[str, str]:
    """The settings of the arguments and of a file. Raises JavaError."""
    from kohort.cli.connection import text_of
    from kohort.config import read_properties

    path = options.value("add-config-file")
    found: dict[str, str] = {}
    if path is not None:
        try:
            found |= read_properties(text_of("--add-config-file", path))
        except ValueError as error:
            raise illegal(str(error)) from None
    text = options.value("add-config")
    for part in _BETWEEN_CONFIGS.split(text) if text is not None else ():
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not name:
            raise illegal(
                "requirement failed: Invalid entity config: all configs to be added must be in the "
                'format "key=val" or  "key=[val1,val2]" to group values which contain commas.'
            )
        found[name] = value.removeprefix("[").removesuffix("]")
    return found


def _parse_fails(error: JavaError) -> None:
    raise UsageError(error.text)


def _failed(error: JavaError, words: Sequence[str]) -> None:
    if error.name == illegal("").name:
        error_line(error.text)
        return
    error_line(f"Error while executing config command with args '{' '.join(words)}'")
    for traced in error.trace():
        error_line(traced)


TOOL = Tool(
    "kohort-configs",
    "show and change settings of groups",
    OPTIONS,
    _act,
    _parse_fails,
    _failed,
    java_fails=True,
)

if __name__ == "__main__":
    sys.exit(main())
