# SPDX-License-Identifier: Apache-2.0
"""IncrementalAlterConfigs and the older AlterConfigs: change settings of topics, brokers and
groups, each resource as a whole or not at all.

AlterConfigs takes back whatever it does not name; apart from that it sets, as the other one may.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from itertools import chain
from typing import Any, NamedTuple

from kohort.config import (
    BROKER_SETTINGS,
    DYNAMIC_NAMES,
    TOPIC_SETTINGS,
    UNREAD_AT_MOST,
    BrokerConfig,
    ConfigError,
    Kind,
    check_topic_together,
    checked_dynamic_config,
    checked_topic_config,
    is_limit_of_listener,
    is_of_certificate,
    is_of_listener,
    is_secret,
    is_unused,
    text_of,
    with_dynamic,
)
from kohort.config.listeners import client_listeners
from kohort.coordinator.group_settings import AlterGroupSettings, GroupSettings, changes_text
from kohort.errors import ApiError, ErrorCode
from kohort.machines.effects import Call, Client
from kohort.server.access import ALTER_CONFIGS
from kohort.server.apis import group_configs
from kohort.server.apis.resources import (
    Resource,
    check_resource,
    refused_resource,
    topic_value,
)
from kohort.server.apis.topic_changes import change_in_parts
from kohort.server.catalog import Draft, Topic, check_topic_name
from kohort.server.node import Node
from kohort.server.requests.piecewise import answer_in_pieces
from kohort.server.requests.reply_tokens import (
    ContinuationToken,
    GatherToken,
    ReplyToken,
    ask_in_sequence,
)
from kohort.server.requests.steps import StepBudget, Steps, slices
from kohort.terms import NO_TOPIC_ID, GroupId, Millis
from kohort.wire.messages import alter_configs as replacing
from kohort.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)

# Another policy would remove records that nothing supersedes.
_KEEPS_GROUPS = frozenset({"cleanup.policy"})

GROUPS_AT_ONCE = 64
SETTINGS_MAX = 1000  # of one resource: there are not half as many names

Outcome = ApiError | None
"""Why a resource was refused, if it was."""


class _Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


ResourceKey = tuple[int, str]
"""The type of a resource, and its name."""


class _Change(NamedTuple):
    """What a client asks of one resource; `times` is how often the request names it."""

    kind: int
    name: str
    configs: list[AlterableConfig]
    replaces: bool
    times: int


def incremental_alter_configs(
    node: Node, call: Call[IncrementalAlterConfigsRequest], _now: Millis
) -> Steps[None]:
    """Change or refuse each resource by itself."""
    changes = yield from _changes(call.request.resources, replaces=False)
    _change(node, call, changes, AlterConfigsResourceResponse)


def alter_configs(
    node: Node, call: Call[replacing.AlterConfigsRequest], _now: Millis
) -> Steps[None]:
    """Replace the settings of each resource, or refuse it."""
    changes = yield from _changes(call.request.resources, replaces=True)
    _change(node, call, changes, replacing.AlterConfigsResourceResponse)


def _changes(
    resources: Sequence[AlterConfigsResource] | Sequence[replacing.AlterConfigsResource],
    *,
    replaces: bool,
) -> Steps[dict[ResourceKey, _Change]]:
    """What is asked of each resource. One that is named twice is refused as a whole, so it is
    looked at once.
    """
    changes: dict[ResourceKey, _Change] = {}
    step_budget = StepBudget()
    for resource in resources:
        named = resource.resource_type, resource.resource_name
        known = changes.get(named)
        if known is None:
            some = resource.configs[: SETTINGS_MAX + 1]  # more are refused as a whole
            configs = [_setting(config) for config in some]
            changes[named] = _Change(*named, configs, replaces, times=1)
        else:
            changes[named] = known._replace(times=known.times + 1)
        if step_budget.is_over(1 + len(resource.configs)):
            yield
    return changes


def _setting(config: AlterableConfig | replacing.AlterableConfig) -> AlterableConfig:
    """The older request only sets."""
    if isinstance(config, AlterableConfig):
        return config
    return AlterableConfig(name=config.name, config_operation=_Operation.SET, value=config.value)


def _change(
    node: Node, call: Call[Any], changes: dict[ResourceKey, _Change], response: type[Any]
) -> None:
    """Groups are changed by their shards, everything else with the catalog. The answer, of a
    `response` for each resource as often as it is named, waits for all of them.
    """
    groups = {named: change for named, change in changes.items() if change.kind == Resource.GROUP}
    others = {named: change for named, change in changes.items() if change.kind != Resource.GROUP}

    def answer(outcomes: dict[ResourceKey, Outcome]) -> None:
        responses = (
            _response_for(resource, outcomes, response) for resource in call.request.resources
        )
        answer_in_pieces(node, call, "responses", responses)

    def merge(parts: list[dict[ResourceKey, Outcome]]) -> dict[ResourceKey, Outcome]:
        return {named: outcome for part in parts for named, outcome in part.items()}

    if not changes:
        answer({})
        return
    gather = GatherToken(ContinuationToken(call.token, answer), bool(groups) + bool(others), merge)
    if groups:
        part = Call(gather.part(0), call.request, call.version, call.client)
        _change_groups(node, part, groups)
    if others:
        part = Call(gather.part(int(bool(groups))), call.request, call.version, call.client)
        _change_catalog(node, part, others)


def _response_for(resource: Any, outcomes: dict[ResourceKey, Outcome], response: type[Any]) -> Any:
    error = outcomes[resource.resource_type, resource.resource_name]
    return response(
        error_code=0 if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _change_groups(node: Node, call: Call[Any], changes: dict[ResourceKey, _Change]) -> None:
    """Some groups after the others; answered by their outcomes."""
    parts = slices([*changes.items()], GROUPS_AT_ONCE)
    request, version, client = call.request, call.version, call.client

    def ask(token: ReplyToken, number: int) -> None:
        gather = GatherToken(token, len(parts[number]), list)
        for index, (_, change) in enumerate(parts[number]):
            own = Call(gather.part(index), request, version, client)
            try:
                _change_group(node, own, change)
            except ApiError as error:
                own.token.answer(GroupSettings(error=error.without_frames()))

    def merge(told: list[list[GroupSettings]]) -> dict[ResourceKey, Outcome]:
        errors = (settings.error for settings in chain.from_iterable(told))
        return dict(zip(changes, errors, strict=True))

    ask_in_sequence(node.cluster.scheduler, call.token, len(parts), ask, merge)


def _change_group(node: Node, call: Call[Any], change: _Change) -> None:
    """Raises ApiError for what is refused before the shard is asked."""
    _check_size(change)
    check_resource(node.cluster.may, call.client, ALTER_CONFIGS, change.kind, change.name)
    _check_operations(change.configs, frozenset())
    if not change.name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    message = AlterGroupSettings(
        GroupId(change.name),
        [
            (config.name, None if config.config_operation == _Operation.DELETE else config.value)
            for config in change.configs
        ],
        replaces=change.replaces,
        validate_only=call.request.validate_only,
    )
    group_configs.ask(node, call, message, call.token)


def _change_catalog(node: Node, call: Call[Any], changes: dict[ResourceKey, _Change]) -> None:
    texts: dict[ResourceKey, str] = {}
    validate_only = call.request.validate_only

    def judge(
        draft: Draft, asked: Sequence[tuple[ResourceKey, _Change]]
    ) -> dict[ResourceKey, Outcome]:
        judged: dict[ResourceKey, Outcome] = {}
        for named, change in asked:
            judged[named] = None
            try:
                texts[named] = _alter(node, call.client, draft, change)
            except ApiError as error:
                judged[named] = error.without_frames()
        return judged

    def answer(judged: dict[ResourceKey, Outcome]) -> None:
        for named, text in texts.items():
            if judged[named] is None and not validate_only:
                if text:
                    node.cluster.observe.info(text)
                _read_certificates(node, changes[named])
        call.token.answer(judged)

    asked = [*changes.items()]
    change_in_parts(node, call, asked, judge, answer, validate_only=validate_only)


def _read_certificates(node: Node, change: _Change) -> None:
    """A setting that is set to the text that it has counts as a change: its file may be another."""
    names = [config.name for config in change.configs if is_of_certificate(config.name)]
    certificates = node.cluster.certificates
    if change.kind == Resource.BROKER and names and certificates is not None:
        certificates.reload(node.cluster.config, names)


def _check_size(change: _Change) -> None:
    if change.times > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{change.name!r} is named twice")
    if len(change.configs) > SETTINGS_MAX:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"more than {SETTINGS_MAX} settings of {change.name!r}, expected at most so many",
        )


_OPERATIONS = frozenset(operation.value for operation in _Operation)
_BROKER_LISTS = frozenset(name for name in DYNAMIC_NAMES if BROKER_SETTINGS[name].kind is Kind.LIST)
_TOPIC_LISTS = frozenset(
    name for name, row in TOPIC_SETTINGS.items() if row.setting.kind is Kind.LIST
)


def _alter(node: Node, client: Client, draft: Draft, change: _Change) -> str:
    """Change the settings of a topic or a broker in the draft. Returns what has changed, in words
    for the log of the broker. Raises ApiError.
    """
    _check_size(change)
    check_resource(node.cluster.may, client, ALTER_CONFIGS, change.kind, change.name)
    if change.kind == Resource.BROKER:
        return _alter_broker(node, draft, change)
    if change.kind == Resource.TOPIC:
        return _alter_topic(node, draft, change)
    raise refused_resource(change.kind)


def _alter_broker(node: Node, draft: Draft, change: _Change) -> str:
    """The nodes of a process share their settings: the first one has some of its own, and the empty
    name means all of them. What nothing reads may be set for any node.
    """
    _check_operations(change.configs, _BROKER_LISTS)
    first, *further = map(str, node.cluster.placement.node_ids)
    names = [config.name for config in change.configs]
    if change.name not in ("", first) and not (
        change.name in further and all(map(is_unused, names))
    ):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"broker is {change.name!r}, expected {first}, or an empty name for all",
        )
    of_listeners = [name for name in names if is_of_listener(name)]
    of_certificates = [name for name in of_listeners if is_of_certificate(name)]
    if of_certificates and not change.name:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Cannot update these configs at default cluster level: {', '.join(of_certificates)}",
        )
    fixed = [
        name
        for name in names
        if name not in DYNAMIC_NAMES and name not in of_listeners and not is_unused(name)
    ]
    if fixed:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Cannot update these configs dynamically: {', '.join(sorted(fixed))}",
        )
    before = draft.broker_configs.get(change.name, {})
    after = {} if change.replaces else dict(before)
    default = draft.broker_configs.get("", {})
    try:
        for config in change.configs:
            text = _changed_text(
                config,
                checked_dynamic_config,
                after.get(config.name) or default.get(config.name) or _of_file(node, config.name),
            )
            if text is None:
                after.pop(config.name, None)
            else:
                after[config.name] = text
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error
    _check_in_force(node, draft, change, after)
    _check_certificates(node, draft, change.name, after, of_certificates)
    _check_listeners(node, after, of_listeners)
    _check_unread(before, after)
    if after != before:
        draft.configure_broker(change.name, after)
    whose = f"broker {change.name}" if change.name else "all brokers"
    return _describe_changes(whose, before, after, is_secret)


def _of_file(node: Node, name: str) -> str | None:
    if is_unused(name) or is_of_listener(name):
        return None
    return text_of(node.cluster.base_config.value(name))


def _check_certificates(
    node: Node, draft: Draft, broker: str, after: dict[str, str], names: Sequence[str]
) -> None:
    """Raises ApiError where a listener could not be opened with its new settings."""
    if not names:
        return
    certificates = node.cluster.certificates
    if certificates is None:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"{names[0]} is set, expected the name of a listener that speaks TLS: there is none",
        )
    configured = {**draft.broker_configs, broker: after}
    try:
        certificates.check(with_dynamic(node.cluster.base_config, configured).config, names)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error


def _check_listeners(node: Node, after: Mapping[str, str], names: Sequence[str]) -> None:
    """Raises ApiError for a limit of a listener that there is not: nothing would be limited."""
    prefixes = [listener.prefix for listener in client_listeners(node.cluster.base_config)]
    for name in names:
        if name in after and is_limit_of_listener(name) and not name.startswith(tuple(prefixes)):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{name} is set, expected the name of a listener: {', '.join(prefixes)}",
            )


def _check_in_force(node: Node, draft: Draft, change: _Change, after: dict[str, str]) -> None:
    """Raises ApiError for a change that would not count. What a changed file has left aside before
    is no reason to refuse a change of something else.
    """
    file = node.cluster.base_config
    known = with_dynamic(file, draft.broker_configs).ineffective
    named = {config.name for config in change.configs}
    for name in with_dynamic(file, {**draft.broker_configs, change.name: after}).ineffective:
        if name not in known or (name.broker == change.name and name.name in named):
            raise ApiError(ErrorCode.INVALID_CONFIG, name.why)


def _check_unread(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raises ApiError for more than there is room for of what nothing reads."""
    size, kept = (
        sum(len(f"{name}{text}".encode()) for name, text in texts.items() if is_unused(name))
        for texts in (after, before)
    )
    if size > max(UNREAD_AT_MOST, kept):  # a catalog may have more of an older version
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"settings that nothing here reads have {size} bytes, more than {UNREAD_AT_MOST}",
        )


def _alter_topic(node: Node, draft: Draft, change: _Change) -> str:
    _check_operations(change.configs, _TOPIC_LISTS)
    if not change.name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_topic_name(change.name)
    topic = draft.by_name.get(change.name)
    known = topic or _nobody(change.name)  # values are judged before it is looked for
    configs = _changed_configs(node.cluster.config, known, change)
    if topic is None:
        text = f"The topic '{change.name}' does not exist."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    draft.put(
        Topic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            configs=configs,
            assignments=topic.assignments,
        )
    )
    return _describe_changes(f"topic {topic.name}", topic.configs, configs)


def _describe_changes(
    what: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    hides: Callable[[str], bool] = lambda _name: False,
) -> str:
    changed = changes_text(before, after, hides)
    return f"settings of {what}: {changed}" if changed else ""


def _changed_configs(broker: BrokerConfig, known: Topic, change: _Change) -> dict[str, str]:
    keeps = _KEEPS_GROUPS if known.is_internal else frozenset()
    if change.replaces:
        configs = {name: text for name, text in known.configs.items() if name in keeps}
    else:
        configs = dict(known.configs)
    for config in change.configs:
        value = _changed(broker, known, config)
        if config.name in keeps and not (change.replaces and configs.get(config.name) == value):
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"{config.name} of {known.name} cannot be changed: it would lose groups",
            )
        if value is None:
            configs.pop(config.name, None)
        else:
            configs[config.name] = value
    try:
        check_topic_together(configs, broker)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error
    return configs


def _nobody(name: str) -> Topic:
    return Topic(name=name, topic_id=NO_TOPIC_ID, partitions=0, replication_factor=0)


def _check_operations(changes: Sequence[AlterableConfig], lists: frozenset[str]) -> None:
    """Raises ApiError for operations that nothing allows. Only `lists` can be added to."""
    names = [config.name for config in changes]
    if len(set(names)) < len(names):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    for config in changes:
        if config.value is None and config.config_operation != _Operation.DELETE:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Null value not supported for : {config.name}"
            )
    for config in changes:
        if config.config_operation not in _OPERATIONS:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"operation on {config.name} is {config.config_operation}, expected 0 to 3",
            )
    for config in changes:
        if config.config_operation in _COMBINE and config.name not in lists:
            word = _Operation(config.config_operation).name
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Can't {word} to key {config.name} because its type is not LIST.",
            )


def _changed(broker: BrokerConfig, topic: Topic, config: AlterableConfig) -> str | None:
    """The new text of a setting, or None when it follows the broker again. Raises ApiError."""
    row = TOPIC_SETTINGS.get(config.name)
    old = None if row is None else topic_value(row, topic, broker)
    try:
        return _changed_text(config, checked_topic_config, old)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error


def _changed_text(
    config: AlterableConfig, checked: Callable[[str, str], str], old: str | None
) -> str | None:
    """The new text of a setting that has the text `old` now; None when nothing of its own is left.
    Raises ConfigError.
    """
    if config.config_operation == _Operation.DELETE:
        return None
    assert config.value is not None
    if config.config_operation == _Operation.SET:
        return checked(config.name, config.value)
    combined = _COMBINE[config.config_operation](_entries(old), _entries(config.value))
    return checked(config.name, ",".join(combined))


_COMBINE: dict[int, Callable[[Sequence[str], Sequence[str]], list[str]]] = {
    _Operation.APPEND: lambda old, given: [*old, *(entry for entry in given if entry not in old)],
    _Operation.SUBTRACT: lambda old, given: [entry for entry in old if entry not in given],
}


def _entries(text: str | None) -> list[str]:
    return [entry.strip() for entry in (text or "").split(",") if entry.strip()]
