# SPDX-License-Identifier: Apache-2.0
"""Evidence in the catalog: topics, settings, rules and credentials. Settings of groups stand in the
logs of groups.
"""

from collections.abc import Iterator
from typing import Any

from kohort.records.schemas import GroupSettingsKey
from kohort.sim.checkers.evidence.exchange import Exchange
from kohort.sim.checkers.synced_disk import GROUPS, Mark, SyncedDisk
from kohort.terms import uuid_text

GROUP, TOPIC, BROKER = 32, 2, 4  # types of resources
SET, DELETE = 0, 1
NO_ID = bytes(16)
HAS_TOPIC_ID = 7  # the version of CreateTopics


ABOUT_A_RULE = (
    "resource_type",
    "resource_name",
    "principal",
    "host",
    "operation",
    "permission_type",
)


def _topics(catalog: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {topic["name"]: topic for topic in catalog.get("topics", [])}


def create_topics(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    disk.look_at_catalog()
    for made in exchange.answer.topics:
        if made.error_code or exchange.request.validate_only:
            continue
        if not disk.in_a_catalog(
            exchange.since, _has_topic, made, exchange.version >= HAS_TOPIC_ID
        ):
            yield f"topic {made.name} is made, on the disk it is not"


def _has_topic(catalog: dict[str, Any], made: Any, has_id: bool) -> bool:  # noqa: FBT001
    topic = _topics(catalog).get(made.name)
    return topic is not None and (not has_id or topic["topic_id"] == uuid_text(made.topic_id))


def delete_topics(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    """A topic whose logs are still being removed may be named as one that goes."""
    disk.look_at_catalog()
    for deleted in exchange.answer.responses:
        if not deleted.error_code and not disk.in_a_catalog(exchange.since, _has_not, deleted):
            yield f"topic {deleted.name} is deleted, on the disk it is there"


def _has_not(catalog: dict[str, Any], deleted: Any) -> bool:
    topics = _topics(catalog)
    if deleted.topic_id == NO_ID:
        return deleted.name not in topics
    return uuid_text(deleted.topic_id) not in {topic["topic_id"] for topic in topics.values()}


def create_partitions(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    counts = {topic.name: topic.count for topic in exchange.request.topics}
    disk.look_at_catalog()
    for result in exchange.answer.results:
        if result.error_code or exchange.request.validate_only:
            continue
        count = counts[result.name]
        grown = disk.in_a_catalog(exchange.since, _has_partitions, result.name, count)
        if not grown and not _is_gone_since(disk, exchange.since, result.name):
            yield f"{result.name} has {count} partitions, on the disk it has not"


def _has_partitions(catalog: dict[str, Any], name: str, count: int) -> bool:
    topic = _topics(catalog).get(name)
    return topic is not None and topic["partitions"] >= count


def alter_configs(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    if exchange.request.validate_only:
        return
    disk.look_at_catalog()
    disk.look(GROUPS)
    for resource, done in zip(exchange.request.resources, exchange.answer.responses, strict=True):
        if done.error_code:
            continue
        wanted = {
            config.name: None if _is_deletion(config) else config.value
            for config in resource.configs
            if getattr(config, "config_operation", SET) in (SET, DELETE)
        }
        kind, name = resource.resource_type, resource.resource_name
        if kind == GROUP:
            key = GroupSettingsKey, name
            known = _group_settings(disk.live(*key))
            if not _agree(known, wanted) and not disk.superseded(exchange.since, *key):
                yield f"{wanted} is set for group {name}, on the disk is {known}"
        elif not disk.in_a_catalog(exchange.since, _has_configs, kind, name, wanted) and not (
            kind == TOPIC and _is_gone_since(disk, exchange.since, name)
        ):
            yield f"{wanted} is set for {name or 'all brokers'}, on the disk it is not"


def _is_gone_since(disk: SyncedDisk, since: Mark, name: str) -> bool:
    """Whether a topic has been deleted since a mark: a change of it and its deletion may have been
    made by one write of the catalog.
    """
    later = since._replace(catalogs=since.catalogs + 1)
    return disk.in_a_catalog(later, lambda catalog: name not in _topics(catalog))


def _is_deletion(config: Any) -> bool:
    return config.value is None or getattr(config, "config_operation", SET) == DELETE


def _group_settings(value: Any) -> dict[str, str]:
    return {} if value is None else {entry.name: entry.value for entry in value.settings}


def _has_configs(
    catalog: dict[str, Any], kind: int, name: str, wanted: dict[str, str | None]
) -> bool:
    if kind == BROKER:
        return _agree(catalog.get("broker_configs", {}).get(name, {}), wanted)
    return _agree(_topics(catalog).get(name, {}).get("configs", {}), wanted)


def _agree(known: dict[str, str], wanted: dict[str, str | None]) -> bool:
    """Texts are kept as their setting spells them: of one that is set only its presence counts,
    unless it is a number.
    """
    return all(
        (known.get(name) is None) == (text is None)
        and (text is None or not text.isdigit() or known[name] == text)
        for name, text in wanted.items()
    )


def create_acls(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    disk.look_at_catalog()
    for asked, done in zip(exchange.request.creations, exchange.answer.results, strict=True):
        if not done.error_code and not disk.in_a_catalog(exchange.since, _has_rule, asked):
            yield f"a rule for {asked.principal} is made, on the disk it is not"


def delete_acls(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    disk.look_at_catalog()
    for result in exchange.answer.filter_results:
        for rule in result.matching_acls:
            if not rule.error_code and not disk.in_a_catalog(exchange.since, _has_no_rule, rule):
                yield f"a rule for {rule.principal} is deleted, on the disk it is there"


def _has_rule(catalog: dict[str, Any], rule: Any) -> bool:
    pattern = getattr(rule, "pattern_type", None) or rule.resource_pattern_type
    return any(
        acl["pattern_type"] == pattern
        and all(acl[name] == getattr(rule, name) for name in ABOUT_A_RULE)
        for acl in catalog.get("acls", [])
    )


def _has_no_rule(catalog: dict[str, Any], rule: Any) -> bool:
    return not _has_rule(catalog, rule)


def alter_scram(disk: SyncedDisk, exchange: Exchange) -> Iterator[str]:
    disk.look_at_catalog()
    failed = {result.user for result in exchange.answer.results if result.error_code}
    for change in [*exchange.request.deletions, *exchange.request.upsertions]:
        iterations = getattr(change, "iterations", None)
        if change.name not in failed and not disk.in_a_catalog(
            exchange.since, _has_credential, change, iterations
        ):
            yield f"the credential of {change.name} is changed, on the disk it is not"


def _has_credential(catalog: dict[str, Any], change: Any, iterations: int | None) -> bool:
    """Without iterations: that there is none."""
    found = [
        entry["iterations"]
        for entry in catalog.get("scram_credentials", [])
        if entry["user"] == change.name and entry["mechanism"] == change.mechanism
    ]
    return found == ([] if iterations is None else [iterations])
