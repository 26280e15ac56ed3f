# SPDX-License-Identifier: Apache-2.0
"""A topic that is not there is told once, and once when it comes."""

import asyncio

import pytest
from tests.client.consumer.running import until
from tests.client.scripted import ScriptedCluster, asynchronous

import kohort.client.consumer.missing_topics as module
from kohort.client.consumer.missing_topics import MissingTopics
from kohort.client.network.metadata import Metadata


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_LOOK_S", "_NEXT_LOOK_S"):
        monkeypatch.setattr(module, name, 0.001)


@asynchronous
async def test_what_is_missing_is_told_once_and_when_it_comes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    quick(monkeypatch)
    async with ScriptedCluster() as script:
        script.topics = {"there": [0]}
        metadata = Metadata(script.cluster())
        missing = MissingTopics(metadata, lambda: ["there", "late"], timeout_s=5)
        task = asyncio.create_task(missing.watch())
        await until(lambda: len(script.sent("Metadata")) > 5)
        (line,) = caplog.messages
        assert line.startswith("subscribed to topic late, which is not there: UNKNOWN_TOPIC")
        assert [one.name for one in script.sent("Metadata")[-1].request.topics] == ["late"]
        script.topics["late"] = [0]
        await until(lambda: len(caplog.messages) == 2)
        assert caplog.messages[1] == "topic late is there now"
        asked = len(script.sent("Metadata"))
        await asyncio.sleep(0.05)
        assert len(script.sent("Metadata")) == asked
        task.cancel()
        await metadata.cluster.close()


@asynchronous
async def test_a_cluster_that_is_away_is_not_a_missing_topic(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    quick(monkeypatch)
    async with ScriptedCluster() as script:
        script.topics = {"t": [0]}
        await script.stop(0)
        metadata = Metadata(script.cluster())
        missing = MissingTopics(metadata, lambda: ["t"], timeout_s=0.01)
        task = asyncio.create_task(missing.watch())
        await asyncio.sleep(0.1)
        assert not task.done()
        assert not [one for one in caplog.messages if "is not there" in one]
        task.cancel()
        await metadata.cluster.close()


@asynchronous
async def test_what_others_wait_for_is_looked_for_and_not_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The leader of a classic group looks for all; only metadata tell it what has come."""
    quick(monkeypatch)
    async with ScriptedCluster() as script:
        metadata = Metadata(script.cluster())
        counts: list[tuple[str, int]] = []
        metadata.on_count = lambda name, partitions: counts.append((name, partitions))
        missing = MissingTopics(metadata, lambda: ["mine"], lambda: ["mine", "theirs"], timeout_s=5)
        task = asyncio.create_task(missing.watch())
        await until(lambda: len(script.sent("Metadata")) > 5)
        script.topics["theirs"] = [0, 0]
        await until(lambda: counts)
        task.cancel()
        await metadata.cluster.close()
    assert counts[0] == ("theirs", 2)
    (line,) = caplog.messages
    assert line.startswith("subscribed to topic mine, which is not there")
