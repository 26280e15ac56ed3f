# SPDX-License-Identifier: Apache-2.0
"""Settings of groups: any node is asked, and the shard of the group answers.

The shard keeps what is set; what it is called, where else it comes from and how it is shown is
said here.
"""

from collections.abc import Mapping
from typing import Any

from kohort.config import BROKER_SETTINGS, GROUP_SETTINGS, GroupSetting, text_of
from kohort.coordinator.group_settings import (
    AlterGroupSettings,
    DescribeGroupSettings,
)
from kohort.errors import ApiError, ErrorCode
from kohort.java import hash_order, text_hash
from kohort.machines.effects import Call
from kohort.server.apis.resources import Source, changed_layers
from kohort.server.cluster import Cluster
from kohort.server.node import Node
from kohort.server.placement import NOBODY
from kohort.server.requests.reply_tokens import ReplyToken
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
    token: ReplyToken,
) -> None:
    """Pass a question on; the token gets GroupSettings. Raises ApiError where the shard of the
    group is not open, or rests until somebody leads its partition.
    """
    cluster, group_id = node.cluster, GroupId(message.group_id)
    driver = node.driver_anywhere(group_id)
    index, topic = cluster.placement.shard_of(group_id), cluster.offsets_topic()
    if cluster.placement.leader(topic, index) == NOBODY:
        raise ApiError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"nobody leads partition {index} of {topic.name}, which has the settings of {group_id}",
        )
    cluster.submit(driver, Call(token, message, call.version, call.client))


class DescribedGroupConfigs:
    """The settings of groups in one answer, in upstream's order. Groups that have set the same
    share them: most have set nothing.
    """

    def __init__(self, cluster: Cluster, request: DescribeConfigsRequest) -> None:
        self._cluster = cluster
        self._request = request
        self._described: dict[object, list[DescribeConfigsResourceResult]] = {}

    def of(
        self, texts: Mapping[str, str], keys: frozenset[str]
    ) -> list[DescribeConfigsResourceResult]:
        """Those of a group that has set these texts, as far as they are wanted; no keys means all
        of them.
        """
        alike = tuple(texts.items()), keys
        described = self._described.get(alike)
        if described is None:
            described = self._described[alike] = [
                _config(GROUP_SETTINGS[name], texts.get(name), self._cluster, self._request)
                for name in _NAMES
                if not keys or name in keys
            ]
        return described


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
