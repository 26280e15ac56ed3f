"""Settings of groups: any node is asked, and the shard of the group answers.

The shard keeps what is set; what it is called, where else it comes from and how it is shown is
said here.
"""

from collections.abc import Mapping
from typing import Any

from kohort.config import BROKER_SETTINGS, GROUP_SETTINGS, GroupSetting, text_of
from kohort.coordinator.effects import Call
from kohort.coordinator.group_settings import (
    AlterGroupSettings,
    DescribeGroupSettings,
)
from kohort.java import hash_order, text_hash
from kohort.server.apis.resources import Source, changed_layers
from kohort.server.cluster import Cluster
from kohort.server.node import Node
from kohort.server.tokens import Token
from kohort.terms import GroupId
from kohort.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

_NAMES = tuple(hash_order(GROUP_SETTINGS, text_hash))


def ask(
    node: Node,
    call: Call[Any],
    message: AlterGroupSettings | DescribeGroupSettings,
    token: Token,
) -> None:
    """Pass a question on; the token gets GroupSettings. Raises ApiError where the shard of the
    group is not open.
    """
    driver = node.driver_anywhere(GroupId(message.group_id))
    node.cluster.submit(driver, Call(token, message, call.version, call.client))


def described(
    texts: Mapping[str, str], cluster: Cluster, request: DescribeConfigsRequest, wanted: object
) -> list[DescribeConfigsResourceResult]:
    """The settings of a group that has set these texts, in upstream's order."""
    keys = wanted if isinstance(wanted, list) and wanted else _NAMES
    return [
        _config(GROUP_SETTINGS[name], texts.get(name), cluster, request)
        for name in _NAMES
        if name in keys
    ]


def _config(
    row: GroupSetting, own: str | None, cluster: Cluster, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    name = row.setting.name
    behind = _synonyms(row, cluster)
    synonyms = []
    if request.include_synonyms:
        if own is not None:
            synonyms.append(DescribeConfigsSynonym(name=name, value=own, source=Source.GROUP))
        synonyms += behind
    return DescribeConfigsResourceResult(
        name=name,
        value=text_of(row.followed(cluster.config)) if own is None else own,
        read_only=False,
        config_source=behind[0].source if own is None else Source.GROUP,
        is_sensitive=False,
        synonyms=synonyms,
        config_type=row.setting.kind,
        documentation=row.setting.doc if request.include_documentation else None,
    )


def _synonyms(row: GroupSetting, cluster: Cluster) -> list[DescribeConfigsSynonym]:
    """Where the value comes from that a group without its own has, the strongest source first."""
    name = row.broker_name
    found = [
        DescribeConfigsSynonym(name=name, value=texts[name], source=source)
        for source, texts in changed_layers(cluster)
        if name in texts
    ]
    file = cluster.base_config
    if name in BROKER_SETTINGS and name in file.given:
        value = text_of(file.value(name))
        found.append(DescribeConfigsSynonym(name=name, value=value, source=Source.FILE))
    default = row.setting.default
    found.append(DescribeConfigsSynonym(name=name, value=text_of(default), source=Source.DEFAULT))
    return found
