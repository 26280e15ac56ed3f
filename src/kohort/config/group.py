# SPDX-License-Identifier: Apache-2.0
"""The settings of one group, as IncrementalAlterConfigs takes them (resource type GROUP).

A group that does not set one follows the broker's setting of another name. Those of share and
streams groups are kept and shown for tools that set them: there are no such groups here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kohort.config.broker import BROKER_SETTINGS, BrokerConfig
from kohort.config.settings import INT_MAX, ConfigError, Kind, Setting, Value, text_of

_BY_DURATION = re.compile(
    r"by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+([.]\d+)?S)?)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class GroupSetting:
    """A row of the table: the setting, and the broker's setting behind it. `least` and `most` name
    the broker's settings that bound it.
    """

    setting: Setting
    broker_name: str
    least: str = ""
    most: str = ""

    def followed(self, broker: BrokerConfig) -> Value:
        """The value of a group that does not set it."""
        if self.broker_name in BROKER_SETTINGS:
            return broker.value(self.broker_name)
        return self.setting.default

    def bounds(self, broker: BrokerConfig) -> tuple[int, int]:
        """The smallest and the largest number that this broker takes."""
        least, most = self.setting.least or 0, INT_MAX
        if self.least:
            least, most = broker.value(self.least), broker.value(self.most)  # type: ignore[assignment]
        return int(least), int(most)


def _consumer(name: str, least: int) -> GroupSetting:
    behind = BROKER_SETTINGS[f"group.{name}"]
    bounded = name.removeprefix("consumer.")
    return GroupSetting(
        Setting(name, Kind.INT, behind.default, behind.doc, least),
        behind.name,
        f"group.consumer.min.{bounded}",
        f"group.consumer.max.{bounded}",
    )


def _switch(name: str) -> GroupSetting:
    """Of our own: what a group may switch off, where the broker has it on."""
    behind = BROKER_SETTINGS[f"group.{name}"]
    return GroupSetting(Setting(name, Kind.BOOLEAN, behind.default, behind.doc), behind.name)


def _other(
    name: str,
    default: int | str | bool,  # noqa: FBT001  (a value in a table)
    *,
    least: int | None = None,
    most: int | None = None,
    choices: tuple[str, ...] = (),
    own: bool = False,
) -> GroupSetting:
    kind = Kind.INT
    if isinstance(default, str):
        kind = Kind.STRING
    elif isinstance(default, bool):
        kind = Kind.BOOLEAN
    doc = "Kept and shown, and without effect."
    return GroupSetting(
        Setting(name, kind, default, doc, least, most, choices), name if own else f"group.{name}"
    )


_ROWS = (
    _consumer("consumer.session.timeout.ms", 1),
    _consumer("consumer.heartbeat.interval.ms", 1),
    _consumer("consumer.assignment.interval.ms", 0),
    _switch("consumer.client.assignors.enable"),
    _other("share.session.timeout.ms", 45_000, least=45_000, most=60_000),
    _other("share.heartbeat.interval.ms", 5000, least=5000, most=15_000),
    _other("share.record.lock.duration.ms", 30_000, least=15_000, most=60_000),
    _other("share.delivery.count.limit", 5, least=2, most=10),
    _other("share.partition.max.record.locks", 2000, least=100, most=4000),
    _other("share.auto.offset.reset", "latest", own=True),
    _other(
        "share.isolation.level",
        "read_uncommitted",
        choices=("read_committed", "read_uncommitted"),
        own=True,
    ),
    _other("share.renew.acknowledge.enable", default=True, own=True),
    _other("share.assignment.interval.ms", 1000, least=0, most=15_000),
    _other("streams.session.timeout.ms", 45_000, least=45_000, most=60_000),
    _other("streams.heartbeat.interval.ms", 5000, least=5000, most=15_000),
    _other("streams.num.standby.replicas", 0, least=0, most=2),
    _other("streams.initial.rebalance.delay.ms", 3000, least=0),
    _other("streams.assignment.interval.ms", 1000, least=0, most=15_000),
)
GROUP_SETTINGS: dict[str, GroupSetting] = {row.setting.name: row for row in _ROWS}

SESSION = "consumer.session.timeout.ms"
HEARTBEAT = "consumer.heartbeat.interval.ms"
ASSIGNMENT = "consumer.assignment.interval.ms"
CLIENT_SIDE = "consumer.client.assignors.enable"


def checked_group_config(name: str, text: str, broker: BrokerConfig) -> str:
    """The text of a group's setting, as kept and shown. Raises ConfigError, in upstream's words:
    for tools they are the answer. A bound is told with its value.
    """
    row = GROUP_SETTINGS.get(name)
    if row is None:
        raise ConfigError(f"Unknown group config name: {name}")
    setting, text = row.setting, text.strip()
    invalid = f"Invalid value {text} for configuration {name}"
    if name == "share.auto.offset.reset" and not (
        text in ("earliest", "latest") or _BY_DURATION.fullmatch(text)
    ):
        raise ConfigError(
            f"{invalid}: The value must be either 'earliest', 'latest' or of the format "
            "'by_duration:<PnDTnHnMn.nS>'."
        )
    if setting.kind is not Kind.INT:
        try:
            return text_of(setting.parse(text)) or ""
        except ConfigError as error:
            raise ConfigError(f"{invalid}: expected {setting.range}") from error
    try:
        value = Setting(name, Kind.INT, None, "").parse(text)
    except ConfigError as error:
        raise ConfigError(f"{invalid}: Not a number of type INT") from error
    assert isinstance(value, int)
    if setting.least is not None and value < setting.least:
        raise ConfigError(f"{invalid}: Value must be at least {int(setting.least)}")
    if setting.most is not None and value > setting.most:
        raise ConfigError(f"{invalid}: Value must be no more than {int(setting.most)}")
    least, most = row.bounds(broker)
    if value < least:
        raise ConfigError(f"{name} must be greater than or equal to {row.least}, which is {least}")
    if value > most:
        raise ConfigError(f"{name} must be less than or equal to {row.most}, which is {most}")
    return str(value)


def check_together(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raises ConfigError for settings of a group that contradict one another."""
    if in_force(SESSION, overrides, broker) <= in_force(HEARTBEAT, overrides, broker):
        raise ConfigError(f"{SESSION} must be greater than {HEARTBEAT}")


def in_force(name: str, overrides: Mapping[str, str], broker: BrokerConfig) -> int:
    """The number that counts for a group. A stored text that is no number is left aside, and one
    outside the bounds of this broker, which has other settings than the one that took it, is moved
    to the nearest bound.
    """
    row = GROUP_SETTINGS[name]
    followed = row.followed(broker)
    assert isinstance(followed, int)
    text = overrides.get(name)
    if text is None:
        return followed
    try:
        value = Setting(name, Kind.INT, None, "").parse(text)
    except ConfigError:
        return followed
    assert isinstance(value, int)
    least, most = row.bounds(broker)
    return min(max(value, least), most)


def is_on(name: str, overrides: Mapping[str, str], broker: BrokerConfig) -> bool:
    """Whether a switch counts as on for a group. What the broker has switched off stays off."""
    row = GROUP_SETTINGS[name]
    if not row.followed(broker):
        return False
    try:
        return bool(row.setting.parse(overrides[name])) if name in overrides else True
    except ConfigError:
        return True
