# SPDX-License-Identifier: Apache-2.0
"""What shows and changes settings: `kohort topics config` and `kohort brokers config` here, and
`kohort groups config` beside it.

Names are looked up before anything is changed, and what holds afterwards is shown.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.cluster_commands import ChangeCommand
from kohort.cli.command import (
    ERROR_FIELDS,
    WrongCallError,
    chosen_name,
    complain_of,
    error_fields,
    name,
    pair,
    topic_name,
    with_doubt,
)
from kohort.cli.losses import LOSSES, SettingChange, value_without
from kohort.cli.render import Output
from kohort.errors import ApiError, ErrorCode
from kohort.figures import counted

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient, ConfigEntry, ConfigResource, Outcomes

    Entries = dict[str, ConfigEntry]


class ConfigureResources(ChangeCommand):
    """Settings of things of one kind, by their names: shown, set, taken back."""

    dry_run: ClassVar[str] = "say whether the cluster would take the changes, and make none"
    asks_always: ClassVar[bool] = False  # most changes can be taken back
    lossy: ClassVar[str | None] = "Make these changes, which can delete records,"
    noun: ClassVar[str]  # the type of the resource, and what a line calls it
    key: ClassVar[str]  # what JSON calls its name
    own_source: ClassVar[str]  # where a value comes from that was set for it
    metavar: ClassVar[str] = "NAME"
    names_help: ClassVar[str]
    instead: ClassVar[str]  # of what a value is set
    fallback: ClassVar[str]  # what holds where none is set

    def arguments(self, parser: ArgumentParser) -> None:
        noun = self.noun
        parser.add_argument(
            f"{noun}s",
            nargs="+",
            metavar=self.metavar,
            type=topic_name if noun == "topic" else chosen_name,
            help=self.names_help,
        )
        parser.add_argument(
            "--set",
            action="append",
            type=pair,
            default=[],
            metavar="NAME=VALUE",
            help=f"set this for the {noun}s, {self.instead}; may be repeated",
        )
        parser.set_defaults(shown={})  # what stood above the question
        parser.add_argument(
            "--unset",
            action="append",
            type=name,
            default=[],
            metavar="NAME",
            help=f"let {self.fallback} hold again; may be repeated",
        )

    def mistake(self, args: Namespace) -> str | None:
        what = f"{self.noun}s config"
        keys = [key for key, _ in args.set]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            return f"{what}: {twice[0]} is in --set twice, expected once"
        both = [key for key in keys if key in args.unset]
        if both:
            return f"{what}: {both[0]} is in --set and in --unset, expected one"
        if args.dry_run and not (args.set or args.unset):
            return f"{what}: --dry-run changes nothing, expected --set or --unset with it"
        return None

    def question(self, args: Namespace) -> str | None:
        return self.lossy if any(key in LOSSES for key in _changes(args)) else None

    async def consequences(self, admin: "AdminClient", args: Namespace) -> Sequence[str]:
        names = list(dict.fromkeys(getattr(args, f"{self.noun}s")))
        await self._check_names(admin, self.resource(names[0]), args)
        args.shown = await self._losses(admin, {each: self.resource(each) for each in names}, args)
        return [
            f"{self.noun} {each}: {change.text}"
            for each, changes in args.shown.items()
            for change in changes
        ]

    async def _losses(
        self, admin: "AdminClient", resources: "Mapping[str, ConfigResource]", args: Namespace
    ) -> dict[str, list[SettingChange]]:
        """The changes that can delete records, of the resources that have some. Of one whose
        settings cannot be read all are, unless it is not there.
        """
        found = dict(
            (await admin.describe_configs(resources.values(), include_synonyms=True)).items()
        )
        losses = {}
        for each, resource in resources.items():
            entries = found[resource]
            if isinstance(entries, ApiError):
                if entries.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    continue
                entries = {}
            elif not resource.name:  # of all brokers only what is set is told, one knows the rest
                known = await self._known(admin, resource, synonyms=True)
                own = {
                    key: replace(known[key], value=one.value)
                    for key, one in entries.items()
                    if key in known
                }
                entries = {**known, **own}
            changes = [
                _change_of(key, value, entries.get(key), self._sources(resource))
                for key, value in _changes(args).items()
            ]
            losses[each] = [change for change in changes if change.loses]
        return losses

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "Outcomes[str, Entries]":
        """The settings after the changes. For what could not be changed it is the error."""
        from kohort.client.admin import Outcomes

        names = list(dict.fromkeys(getattr(args, f"{self.noun}s")))
        resources = {each: self.resource(each) for each in names}
        changes = _changes(args)
        refused: dict[str, ApiError] = {}
        if changes:
            await self._check_names(admin, resources[names[0]], args)
            refused = await self._changed_since(admin, resources, args)
            same = {each: resources[each] for each in names if each not in refused}
            refused |= await self._change(admin, same, changes, args, output)
        output.doing = f"reading the settings of {counted(len(names), self.noun)}"
        left = {each: resources[each] for each in names if each not in refused}
        found = await self._found(admin, left, has_changed=bool(changes) and not args.dry_run)
        return Outcomes({each: refused.get(each) or found[each] for each in names})

    def resource(self, given: str) -> "ConfigResource":
        """What the cluster calls it."""
        from kohort.client.admin import ConfigResource, ConfigResourceType

        return ConfigResource(ConfigResourceType(self.noun), given)

    async def _changed_since(
        self, admin: "AdminClient", resources: "Mapping[str, ConfigResource]", args: Namespace
    ) -> dict[str, ApiError]:
        """Those whose settings are not any more what a person was shown, who then said yes."""
        shown = {each: resources[each] for each, changes in args.shown.items() if changes}
        if not shown:
            return {}
        now = await self._losses(admin, shown, args)
        return {
            each: error
            for each in shown
            for change in args.shown[each]
            for found in now.get(each, ())
            if found.name == change.name and (error := change.since(found)) is not None
        }

    async def _change(
        self,
        admin: "AdminClient",
        resources: "Mapping[str, ConfigResource]",
        changes: Mapping[str, str | None],
        args: Namespace,
        output: Output,
    ) -> dict[str, ApiError]:
        if not resources:
            return {}
        wanted = dict.fromkeys(resources.values(), changes)
        doing = f"the settings of {counted(len(resources), self.noun)}"
        if args.dry_run:
            output.doing = f"trying {doing}"
            changed = await admin.alter_configs(wanted, validate_only=True)
        else:
            with output.changing(f"changing {doing}"):
                changed = await admin.alter_configs(wanted)
        failed = changed.failed
        return {
            each: failed[resource] if args.dry_run else with_doubt(failed[resource], "changed")
            for each, resource in resources.items()
            if resource in failed
        }

    async def _found(
        self, admin: "AdminClient", resources: "Mapping[str, ConfigResource]", *, has_changed: bool
    ) -> "dict[str, Entries | ApiError]":
        """The settings. No error in reading them hides that they were changed."""
        if not resources:
            return {}
        try:
            outcomes = dict((await admin.describe_configs(resources.values())).items())
        except ApiError as error:
            if not has_changed:
                raise
            outcomes = dict.fromkeys(resources.values(), error)
        found = {each: outcomes[resource] for each, resource in resources.items()}
        return {
            each: self._unread(each, outcome)
            if has_changed and isinstance(outcome, ApiError)
            else outcome
            for each, outcome in found.items()
        }

    def _unread(self, given: str, error: ApiError) -> ApiError:
        why = error.message or error.code.name
        text = f"{self.noun} {given} is changed, and its settings could not be read: {why}"
        return ApiError(error.code, text)

    async def _check_names(
        self, admin: "AdminClient", resource: "ConfigResource", args: Namespace
    ) -> None:
        """Raises WrongCallError for a name that this cluster has no setting of. A cluster that
        cannot tell its settings is asked for the change all the same.
        """
        from difflib import get_close_matches

        known = await self._known(admin, resource)
        if not known:
            return
        given = [("--set", key) for key, _ in args.set] + [("--unset", key) for key in args.unset]
        for option, key in given:
            if key not in known and not key.startswith("listener.name."):
                near = get_close_matches(key, list(known), 1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
                raise WrongCallError(f"{option}: {key} is not a setting of {self.noun}s; {hint}")

    async def _known(
        self, admin: "AdminClient", resource: "ConfigResource", *, synonyms: bool = False
    ) -> "Entries":
        """The settings that there are; none where the cluster does not tell them."""
        found = await admin.describe_configs([resource], include_synonyms=synonyms)
        return found.succeeded.get(resource, {})

    def _sources(self, _resource: "ConfigResource") -> Collection[str]:
        """Where a value comes from that --unset takes back."""
        return (self.own_source,)

    def set_for(self, entry: "ConfigEntry") -> str:
        """Whose setting holds, in a word."""
        return self.noun if entry.source.name == self.own_source else "broker"

    def show(self, answer: "Outcomes[str, Entries]", args: Namespace, output: Output) -> int:
        if not output.is_table:
            done = "would be changed" if args.dry_run else "changed"
            result = {"result": done} if args.set or args.unset else {}
            rows = (
                {**self._fields(each, outcome), **({} if isinstance(outcome, ApiError) else result)}
                for each, outcome in answer.items()
            )
            beside: dict[str, Any] = {"dry_run": True} if args.dry_run else {}
            columns = (self.key, "configs", *result, *ERROR_FIELDS)
            output.rows(f"{self.noun}s", rows, columns, **beside)
        elif args.dry_run:
            results = [(each, "would be changed") for each in answer.succeeded]
            if results:
                output.table((self.noun.upper(), "RESULT"), results)
        else:
            settings = [
                (each, key, entry.value or "", self.set_for(entry))
                for each, entries in answer.succeeded.items()
                for key, entry in entries.items()
            ]
            if settings:
                output.table((self.noun.upper(), "SETTING", "VALUE", "SET FOR"), settings)
        return complain_of(self.noun, answer)

    def _fields(self, given: str, outcome: "Entries | ApiError") -> dict[str, object]:
        if isinstance(outcome, ApiError):
            return {self.key: given, **error_fields(outcome)}
        configs = {
            key: {"value": entry.value, "own": entry.source.name == self.own_source}
            for key, entry in outcome.items()
        }
        return {self.key: given, "configs": configs}


def _changes(args: Namespace) -> dict[str, str | None]:
    """The new values by their names, None for one that is taken back."""
    return {**dict(args.set), **dict.fromkeys(args.unset)}


def _change_of(
    key: str, value: str | None, entry: "ConfigEntry | None", sources: Collection[str]
) -> SettingChange:
    before = None if entry is None else entry.value
    if value is None and entry is not None:
        value = value_without(entry, sources)
    return SettingChange(key, before, value)


class ConfigureTopics(ConfigureResources):
    """`kohort topics config`."""

    noun: ClassVar[str] = "topic"
    key: ClassVar[str] = "topic"
    own_source: ClassVar[str] = "DYNAMIC_TOPIC_CONFIG"
    names_help: ClassVar[str] = "a topic's name"
    instead: ClassVar[str] = "in place of the broker's setting"
    fallback: ClassVar[str] = "the broker's setting"
    help: ClassVar[str] = "show the settings of topics, and change them"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort topics config orders",
        "kohort topics config orders --set retention.ms=60000 --dry-run",
        "kohort topics config orders --unset retention.ms",
    )


class ConfigureBrokers(ConfigureResources):
    """`kohort brokers config`."""

    noun: ClassVar[str] = "broker"
    key: ClassVar[str] = "broker"
    own_source: ClassVar[str] = "DYNAMIC_BROKER_CONFIG"
    metavar: ClassVar[str] = "ID"
    names_help: ClassVar[str] = "a broker's id, or `all` for what is set for all of them"
    instead: ClassVar[str] = "in place of what is set for all, and of its file"
    fallback: ClassVar[str] = "what is set for all, or its file,"
    help: ClassVar[str] = "show the settings of brokers, and change them while they run"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort brokers config 0",
        "kohort brokers config all --set log.retention.ms=3600000",
        "kohort brokers config 0 --unset log.retention.ms --dry-run",
    )

    _SOURCES: ClassVar[Mapping[str, str]] = {
        "DYNAMIC_BROKER_CONFIG": "broker",
        "DYNAMIC_DEFAULT_BROKER_CONFIG": "all brokers",
        "STATIC_BROKER_CONFIG": "file",
        "DEFAULT_CONFIG": "default",
    }

    def mistake(self, args: Namespace) -> str | None:
        for each in args.brokers:
            if each != "all" and not (each.isascii() and each.isdigit()):
                return f"brokers config: {each!r} is no broker, expected its id, or all"
        return super().mistake(args)

    def resource(self, given: str) -> "ConfigResource":
        return super().resource("" if given == "all" else given)

    async def _known(
        self, admin: "AdminClient", resource: "ConfigResource", *, synonyms: bool = False
    ) -> "Entries":
        """Of all brokers only those are told that are set: any broker knows the others."""
        if not resource.name:
            first = (await admin.describe_cluster())[0]
            resource = resource._replace(name=str(first.node_id))
        return await super()._known(admin, resource, synonyms=synonyms)

    def _sources(self, resource: "ConfigResource") -> Collection[str]:
        """Of all brokers those of one count neither: others have none."""
        own = super()._sources(resource)
        return own if resource.name else (*own, "DYNAMIC_DEFAULT_BROKER_CONFIG")

    def set_for(self, entry: "ConfigEntry") -> str:
        return self._SOURCES.get(entry.source.name, "")
