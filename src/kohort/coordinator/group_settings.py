# SPDX-License-Identifier: Apache-2.0
"""Settings of single groups: kept in the shard of the group, and gone with the group (KIP-848).

An id may have settings before it has a group. Texts are checked when they are set; a broker with
other settings of its own clamps them when they are used.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from kohort.config import BrokerConfig, ConfigError
from kohort.config.group import GROUP_SETTINGS, check_together, checked_group_config
from kohort.coordinator.settings import ConsumerSettings
from kohort.coordinator.state import State
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Effects, GroupEvent, answered
from kohort.records.codec import Record
from kohort.records.schemas import GroupSetting, GroupSettingsKey, GroupSettingsValue
from kohort.terms import GroupId, Millis


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What is set for a group, by name, or why that cannot be told or changed."""

    texts: dict[str, str] = field(default_factory=dict)
    error: ApiError | None = None


@dataclass(frozen=True, slots=True)
class DescribeGroupSettings:
    """Asks what is set for one group; answered by GroupSettings."""

    group_id: GroupId

    def refused(self, error: ApiError) -> GroupSettings:
        return GroupSettings(error=error.without_frames())


@dataclass(frozen=True, slots=True)
class AlterGroupSettings:
    """Changes settings of one group, all of them or none; answered by GroupSettings.

    A change is a name and its new text, or None to take the setting back. With `replaces`
    everything that is not named is taken back too, and with `validate_only` nothing is changed.
    """

    group_id: GroupId
    changes: list[tuple[str, str | None]]
    replaces: bool = False
    validate_only: bool = False

    def refused(self, error: ApiError) -> GroupSettings:
        return GroupSettings(error=error.without_frames())


@dataclass(frozen=True, slots=True)
class ConfiguredGroups:
    """The ids that have settings of their own, or why they cannot be told."""

    group_ids: list[GroupId] = field(default_factory=list)
    error: ApiError | None = None


@dataclass(frozen=True, slots=True)
class ListConfiguredGroups:
    """Asks which groups of the shard have settings; answered by ConfiguredGroups."""

    def refused(self, error: ApiError) -> ConfiguredGroups:
        return ConfiguredGroups(error=error.without_frames())


def describe(state: State, call: Call[DescribeGroupSettings], _now: Millis) -> Effects:
    """Nobody changes the dictionaries that replay has put into the state."""
    return answered(call, GroupSettings(state.group_settings.get(call.request.group_id, {})))


def list_configured(state: State, call: Call[ListConfiguredGroups], _now: Millis) -> Effects:
    return answered(call, ConfiguredGroups(list(state.group_settings)))


def alter(state: State, call: Call[AlterGroupSettings], _now: Millis) -> Effects:
    """One record with all that is set now. Raises ApiError INVALID_CONFIG."""
    request = call.request
    group_id = request.group_id
    before = state.group_settings.get(group_id, {})
    after = {} if request.replaces else dict(before)
    try:
        for name, text in request.changes:
            if text is None:
                after.pop(name, None)
            else:
                after[name] = checked_group_config(name, text, state.broker)
        check_together(after, state.broker)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error
    if request.validate_only or after == before:
        return answered(call, GroupSettings(before))
    effects = answered(call, GroupSettings(after), [_record(group_id, after)])
    effects.events.append(GroupEvent(group_id, changes_text(before, after)))
    return effects


def ended(state: State, group_id: GroupId) -> list[Record]:
    """The end of a group's settings, if it has any: a group that ends takes them along."""
    return [_record(group_id, {})] if group_id in state.group_settings else []


def replay(state: State, key: GroupSettingsKey, value: GroupSettingsValue | None) -> None:
    """Make true what the record says, also for the group that is running."""
    group_id = GroupId(key.group_id)
    if value is None:
        state.group_settings.pop(group_id, None)
    else:
        state.group_settings[group_id] = {setting.name: setting.value for setting in value.settings}
    group = state.groups.consumer(group_id)
    if group is not None:
        group.settings = state.settings_of(group_id)


def reconfigure(state: State, config: BrokerConfig) -> None:
    """The broker's settings have changed: groups that do not set their own follow them."""
    state.broker = config
    state.consumer_settings = ConsumerSettings.of(config)
    for group in state.groups.all_consumer():
        group.settings = state.settings_of(group.id)
        group.changed()


def start(state: State) -> Iterator[Effects]:
    """The log has been read: say what in it this broker would not take."""
    warnings = []
    for group_id, texts in state.group_settings.items():
        for name, text in texts.items():
            try:
                checked_group_config(name, text, state.broker)
            except ConfigError as error:
                does = "is kept within the bounds" if name in GROUP_SETTINGS else "has no effect"
                warnings.append(f"group {group_id} has {name}={text}, which {does}: {error}")
        try:
            check_together(texts, state.broker)
        except ConfigError as error:
            warnings.append(f"group {group_id}: {error}, so members have a shorter interval")
    if warnings:
        yield Effects(warnings=warnings)


def _record(group_id: GroupId, texts: dict[str, str]) -> Record:
    value = GroupSettingsValue(
        settings=[GroupSetting(name=name, value=text) for name, text in sorted(texts.items())]
    )
    return Record(GroupSettingsKey(group_id=group_id), value if texts else None)


def changes_text(
    before: Mapping[str, str],
    after: Mapping[str, str],
    hides: Callable[[str], bool] = lambda _name: False,
) -> str:
    """What has changed, for the log of the broker: `a=1, b=(unset)`. What a name `hides` is not
    told.
    """
    shown = {name: "(not shown)" if hides(name) else text for name, text in after.items()}
    names = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    return ", ".join(f"{name}={shown.get(name, '(unset)')}" for name in names)
