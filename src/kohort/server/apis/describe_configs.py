# SPDX-License-Identifier: Apache-2.0
"""DescribeConfigs: the settings of topics, brokers and groups, and where each comes from."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import Any, NamedTuple

from kohort.config import (
    BROKER_SETTINGS,
    DYNAMIC_NAMES,
    LISTENER_NAMES,
    TOPIC_SETTINGS,
    BrokerConfig,
    Kind,
    Setting,
    TopicSetting,
    is_of_listener,
    is_unknown,
    own_name,
    text_of,
)
from kohort.coordinator.group_settings import DescribeGroupSettings, GroupSettings
from kohort.errors import ApiError, ErrorCode
from kohort.java import hash_order, text_hash
from kohort.machines.effects import Call, Client
from kohort.server.access import DESCRIBE_CONFIGS
from kohort.server.apis import group_configs
from kohort.server.apis.resources import (
    Resource,
    Source,
    changed_layers,
    check_resource,
    refused_resource,
    topic_value,
)
from kohort.server.catalog import Topic, check_topic_name
from kohort.server.node import Node
from kohort.server.requests.piecewise import PiecewiseAnswer
from kohort.server.requests.reply_tokens import GatherToken, ReplyToken, ask_in_sequence
from kohort.server.requests.steps import StepBudget, Steps, has_gone
from kohort.terms import GroupId, Millis
from kohort.wire.messages.create_topics import CreatableTopicConfigs
from kohort.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

# The authorizer reads these itself, so upstream's broker knows only that they are set.
_OF_AUTHORIZER = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
# Upstream keeps this one as a default of the whole cluster, because of the eligible leader
# replicas of KIP-966, and shows it as such.
_CLUSTER_DEFAULTS = frozenset({"min.insync.replicas"})


FEWEST_SETTINGS = 2  # what a resource counts for in a step: many share theirs
_UNKNOWN_TYPE = 0  # beside those of `Kind`

# Entries come in the order of upstream's hash tables, since some clients rely on it. Upstream's
# table of broker settings holds 340 names, so it is larger than ours would be.
_BROKER_TABLE = 512
_TOPIC_NAMES = tuple(hash_order(TOPIC_SETTINGS, text_hash))
_BROKER_NAMES = tuple(hash_order(BROKER_SETTINGS, text_hash, _BROKER_TABLE))
# Settings that say the same in other units: each shows the sources of all of them.
_TOGETHER: dict[str, tuple[str, ...]] = {
    synonym.name: tuple(synonym.name for synonym in row.synonyms)
    for row in TOPIC_SETTINGS.values()
    for synonym in row.synonyms
}


def created_configs(node: Node, topic: Topic) -> list[CreatableTopicConfigs]:
    """All settings of a topic that was just made, in the form of CreateTopics (KIP-525)."""
    broker = node.cluster.config
    return [
        CreatableTopicConfigs(
            name=name,
            value=topic_value(row, topic, broker),
            config_source=_topic_source(node, row, topic, broker),
        )
        for name, row in TOPIC_SETTINGS.items()
    ]


class _ConfigQuery(NamedTuple):
    """A resource, and the settings of it that are wanted. None means all of them."""

    resource: DescribeConfigsResource
    keys: frozenset[str]

    def wants(self, name: str) -> bool:
        return not self.keys or name in self.keys


def describe_configs(node: Node, call: Call[DescribeConfigsRequest], _now: Millis) -> Steps[None]:
    """Describe each resource by itself, and once, some of them after the others. Unknown names are
    left out, as upstream does. The shards of groups are asked for their settings.
    """
    parts = yield from _parts(call.request.resources)
    topics = _Topics(node, call.request)
    groups = group_configs.DescribedGroupConfigs(node.cluster, call.request)
    answer = PiecewiseAnswer(node, call, "results")

    def ask(token: ReplyToken, number: int) -> None:
        part, parts[number] = parts[number], []  # what has been described is not kept
        own = Call(token, call.request, call.version, call.client)
        _describe(node, own, part, topics, groups, answer)

    def whole(_parts: list[None]) -> Any:
        return answer.whole()

    ask_in_sequence(node.cluster.scheduler, call.token, len(parts), ask, whole, has_gone(call))


def _parts(asked: Iterable[DescribeConfigsResource]) -> Steps[list[list[_ConfigQuery]]]:
    """What is asked in parts that are short steps, without those that ask the same again: an answer
    is hundreds of times as large as a question, and upstream gives as many.
    """
    seen: set[object] = set()
    parts: list[list[_ConfigQuery]] = [[]]
    step, part = StepBudget(), StepBudget()
    for resource in asked:
        keys = frozenset(resource.configuration_keys or ())
        place = resource.resource_type, resource.resource_name, keys
        if place not in seen:
            seen.add(place)
            parts[-1].append(_ConfigQuery(resource, keys))
            if part.is_over(FEWEST_SETTINGS + len(keys)):
                parts.append([])
        if step.is_over(1 + len(keys)):
            yield
    return parts


def _describe(
    node: Node,
    call: Call[DescribeConfigsRequest],
    part: Sequence[_ConfigQuery],
    topics: "_Topics",
    groups: group_configs.DescribedGroupConfigs,
    answer: PiecewiseAnswer,
) -> None:
    """Add the results of a part to the answer, and answer the token of the call by None."""
    results = [_result(asked.resource, []) for asked in part]
    wanted: list[int] = []  # places of groups
    for at, asked in enumerate(part):
        resource = asked.resource
        try:
            if resource.resource_type == Resource.GROUP:
                _check_group(node, call.client, resource.resource_name)
                wanted.append(at)
            else:
                results[at].configs = _described(node, call, asked, topics)
        except ApiError as error:
            results[at] = _result(resource, [], error)

    def merge(told: list[GroupSettings]) -> None:
        for at, settings in zip(wanted, told, strict=True):
            if settings.error is None:
                results[at].configs = groups.of(settings.texts, part[at].keys)
            else:
                results[at] = _result(part[at].resource, [], settings.error)
        for result in results:
            answer.add(result, 1 + len(result.configs))

    if wanted:
        _ask_groups(node, call, [part[at].resource.resource_name for at in wanted], merge)
    else:
        merge([])
        call.token.answer(None)


def _ask_groups(
    node: Node,
    call: Call[DescribeConfigsRequest],
    names: Sequence[str],
    merge: Callable[[list[GroupSettings]], None],
) -> None:
    """Ask the shards of groups for their settings."""
    gather = GatherToken(call.token, len(names), merge)
    for index, name in enumerate(names):
        question = DescribeGroupSettings(GroupId(name))
        part = gather.part(index)
        try:
            group_configs.ask(node, call, question, part)
        except ApiError as error:
            part.answer(question.refused(error))


def _result(
    resource: DescribeConfigsResource,
    configs: list[DescribeConfigsResourceResult],
    error: ApiError | None = None,
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=0 if error is None else error.code,
        error_message="" if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def _check_group(node: Node, client: Client, name: str) -> None:
    check_resource(node.cluster.may, client, DESCRIBE_CONFIGS, Resource.GROUP, name)
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")


class _Topics:
    """The settings of topics, in one answer. Topics that have set the same share them: each has
    dozens, and a request may name very many topics.
    """

    def __init__(self, node: Node, request: DescribeConfigsRequest) -> None:
        self._node = node
        self._request = request
        self._described: dict[object, list[DescribeConfigsResourceResult]] = {}

    def of(self, topic: Topic, asked: _ConfigQuery) -> list[DescribeConfigsResourceResult]:
        alike = tuple(topic.configs.items()), asked.keys
        described = self._described.get(alike)
        if described is None:
            config = self._node.cluster.config
            described = self._described[alike] = [
                _topic_config(self._node, TOPIC_SETTINGS[key], topic, config, self._request)
                for key in _TOPIC_NAMES
                if asked.wants(key)
            ]
        return described


def _described(
    node: Node, call: Call[DescribeConfigsRequest], asked: _ConfigQuery, topics: _Topics
) -> list[DescribeConfigsResourceResult]:
    request, resource = call.request, asked.resource
    name = resource.resource_name
    check_resource(node.cluster.may, call.client, DESCRIBE_CONFIGS, resource.resource_type, name)
    match resource.resource_type:
        case Resource.TOPIC:
            check_topic_name(name)
            topic = node.cluster.catalog.by_name.get(name)
            if topic is None:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return topics.of(topic, asked)
        case Resource.BROKER:
            if not name:  # what is set for all brokers
                changed = node.cluster.catalog.broker_configs.get("", {})
                return [
                    _broker_config(node, BROKER_SETTINGS[key], _in_force(node), request)
                    for key in _BROKER_NAMES
                    if key in changed and asked.wants(key)
                ] + _unread_configs(node, ("",), asked, request)
            if name != str(node.id):
                raise ApiError(ErrorCode.INVALID_REQUEST, f"broker is {name!r}, expected {node.id}")
            config = _in_force(node)
            return [
                _broker_config(node, BROKER_SETTINGS[key], config, request)
                for key in _BROKER_NAMES
                if asked.wants(key) and (key not in _OF_AUTHORIZER or key in config.given)
            ] + [
                *_listener_configs(node, asked, request),
                *_unread_configs(node, (name, ""), asked, request),
            ]
        case _:
            raise refused_resource(resource.resource_type)


def _in_force(node: Node) -> BrokerConfig:
    """The settings of this node. Further nodes listen on the ports after the first one's."""
    config = node.cluster.config
    return replace(
        config,
        listeners=node.listeners,
        advertised_listeners=node.advertised,
        broker_rack=node.endpoints[node.id].rack,
        given=config.given | {"advertised.listeners"},
    )


def _topic_source(node: Node, row: TopicSetting, topic: Topic, broker: BrokerConfig) -> Source:
    if row.setting.name in topic.configs:
        return Source.TOPIC
    for synonym in row.synonyms:
        changed = _changed_source(node, synonym.name)
        if changed is not None:
            return changed
    if row.setting.name in _CLUSTER_DEFAULTS:
        return Source.CLUSTER_DEFAULT
    given = any(synonym.name in broker.given for synonym in row.synonyms)
    return Source.FILE if given else Source.DEFAULT


def _topic_config(
    node: Node,
    row: TopicSetting,
    topic: Topic,
    broker: BrokerConfig,
    request: DescribeConfigsRequest,
) -> DescribeConfigsResourceResult:
    name = row.setting.name
    synonyms: list[DescribeConfigsSynonym] = []
    if request.include_synonyms:
        own = topic.configs.get(name)
        if own is not None:
            synonyms.append(DescribeConfigsSynonym(name=name, value=own, source=Source.TOPIC))
        if row.synonyms:
            synonyms += _broker_synonyms(node, row.synonyms[0].name, broker)
    return DescribeConfigsResourceResult(
        name=name,
        value=topic_value(row, topic, broker),
        read_only=False,
        config_source=_topic_source(node, row, topic, broker),
        is_sensitive=False,
        synonyms=synonyms,
        config_type=row.setting.kind,
        documentation=row.setting.doc if request.include_documentation else None,
    )


def _broker_synonyms(node: Node, name: str, broker: BrokerConfig) -> list[DescribeConfigsSynonym]:
    """The sources of a broker's setting: values of the cluster and of the file, then defaults, also
    of settings with the same meaning. As upstream does, it starts at the setting's own name.
    """
    names = _TOGETHER.get(name, (name,))
    sources = ((Source.CLUSTER_DEFAULT, _CLUSTER_DEFAULTS), (Source.FILE, broker.given))
    found = [
        DescribeConfigsSynonym(name=alike, value=texts[alike], source=source)
        for source, texts in changed_layers(node.cluster)
        for alike in names
        if alike in texts
    ]
    file = node.cluster.base_config if found else broker
    found += [
        DescribeConfigsSynonym(name=alike, value=text_of(file.value(alike)), source=source)
        for source, texts in sources
        for alike in names
        if alike in texts
    ]
    found += [
        DescribeConfigsSynonym(name=alike, value=text_of(default), source=Source.DEFAULT)
        for alike in names
        if (default := BROKER_SETTINGS[alike].default) is not None
    ]
    return list(dropwhile(lambda synonym: synonym.name != name, found))


def _changed_source(node: Node, name: str) -> Source | None:
    """Where the value comes from when it was changed while the broker ran."""
    return next((layer for layer, texts in changed_layers(node.cluster) if name in texts), None)


def _broker_source(node: Node, name: str, broker: BrokerConfig) -> Source:
    changed = _changed_source(node, name)
    if changed is not None:
        return changed
    if name in _CLUSTER_DEFAULTS:
        return Source.CLUSTER_DEFAULT
    return Source.FILE if name in broker.given else Source.DEFAULT


def _broker_config(
    node: Node, setting: Setting, broker: BrokerConfig, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    if setting.name in _OF_AUTHORIZER:
        given = DescribeConfigsSynonym(name=setting.name, value=None, source=Source.FILE)
        return _unread_config([given], request)
    is_secret = setting.kind is Kind.PASSWORD
    synonyms = _broker_synonyms(node, setting.name, broker) if request.include_synonyms else []
    for synonym in synonyms if is_secret else ():
        synonym.value = None
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=None if is_secret else text_of(broker.value(setting.name)),
        read_only=setting.name not in DYNAMIC_NAMES and setting.name not in LISTENER_NAMES,
        config_source=_broker_source(node, setting.name, broker),
        is_sensitive=is_secret,
        synonyms=synonyms,
        config_type=setting.kind,
        documentation=setting.doc if request.include_documentation else None,
    )


def _listener_configs(
    node: Node, asked: _ConfigQuery, request: DescribeConfigsRequest
) -> list[DescribeConfigsResourceResult]:
    """What was changed of listeners, under the names that were used."""
    layers = dict(reversed(changed_layers(node.cluster)))
    changed = {name: source for source, texts in layers.items() for name in texts}
    found = []
    for name, source in changed.items():
        if is_of_listener(name) and asked.wants(name):
            text = layers[source][name]
            setting = BROKER_SETTINGS[own_name(name)]
            is_secret = setting.kind is Kind.PASSWORD
            value = None if is_secret else text
            synonym = DescribeConfigsSynonym(name=name, value=value, source=source)
            found.append(
                DescribeConfigsResourceResult(
                    name=name,
                    value=value,
                    read_only=False,
                    config_source=source,
                    is_sensitive=is_secret,
                    synonyms=[synonym] if request.include_synonyms else [],
                    config_type=setting.kind,
                    documentation=setting.doc if request.include_documentation else None,
                )
            )
    return found


def _unread_configs(
    node: Node,
    brokers: Sequence[str],
    asked: _ConfigQuery,
    request: DescribeConfigsRequest,
) -> list[DescribeConfigsResourceResult]:
    """Changed settings that nothing here reads: they are kept, so they are shown. Of one that is
    set for several of these `brokers`, the first counts.
    """
    layers: dict[str, list[DescribeConfigsSynonym]] = {}
    for broker in brokers:
        source = Source.BROKER if broker else Source.CLUSTER_DEFAULT
        for setting in node.cluster.dynamic.unread:
            if setting.broker == broker and asked.wants(setting.name):
                text = None if is_unknown(setting.name) else setting.text
                synonym = DescribeConfigsSynonym(name=setting.name, value=text, source=source)
                layers.setdefault(setting.name, []).append(synonym)
    return [_unread_config(synonyms, request) for synonyms in layers.values()]


def _unread_config(
    synonyms: list[DescribeConfigsSynonym], request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    """One whose name upstream does not know is shown as upstream shows it."""
    first = synonyms[0]
    unknown = is_unknown(first.name) or first.name in _OF_AUTHORIZER
    told = request.include_documentation and not unknown
    return DescribeConfigsResourceResult(
        name=first.name,
        value=first.value,
        read_only=unknown,
        config_source=first.source,
        is_sensitive=unknown,
        synonyms=synonyms if request.include_synonyms else [],
        config_type=_UNKNOWN_TYPE if unknown else Kind.STRING,
        documentation="Kept, and read by nothing here." if told else None,
    )
