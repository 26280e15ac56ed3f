# SPDX-License-Identifier: Apache-2.0
"""Two codecs that others wrote, kio and kafka-python, read ours and write the same bytes."""

import io
from importlib import import_module
from typing import Any

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
import pytest
from kio.serial import entity_reader, entity_writer
from tests.golden import all_frames

from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.frames import decode_request_header

pytestmark = pytest.mark.usefixtures("each_codec")

FRAMES = [
    frame
    for frame in all_frames()
    if frame["api_key"] in APIS
    and frame["version"] in APIS[frame["api_key"]].versions
    and frame["response_hex"]
    and frame["response"].get("ErrorCode") != 35  # in the layout of another version
]
NAMES = sorted({frame["api"] for frame in FRAMES})
# kafka-python reads ApiVersions by trial over its versions, not in the one it is told.
READ_BY_TRIAL = {"ApiVersions"}
KAFKA_PYTHON = [
    kafka.protocol.admin,
    kafka.protocol.consumer,
    kafka.protocol.metadata,
    kafka.protocol.producer,
]


def bodies(name: str):
    """Our own encoding of each captured request and answer: (side, version, bytes)."""
    for frame in (one for one in FRAMES if one["api"] == name):
        api, version = APIS[frame["api_key"]], frame["version"]
        flexible = api.flexible(version)
        raw = bytes.fromhex(frame["request_hex"])
        start = decode_request_header(raw, flexible=flexible)[1]
        yield (
            "request",
            version,
            codec.encode(codec.decode(api.request, version, raw, start), version),
        )
        raw = bytes.fromhex(frame["response_hex"])
        start = 5 if flexible and name != "ApiVersions" else 4
        answer = codec.decode(api.response, version, raw, start)
        yield "response", version, codec.encode(answer, version)


def kio_entity(name: str, version: int, side: str) -> Any:
    module = APIS_BY_NAME[name].request.__module__.rpartition(".")[2]
    try:
        schema = import_module(f"kio.schema.{module}.v{version}.{side}")
    except ModuleNotFoundError:
        return None
    return getattr(schema, f"{name}{side.capitalize()}")


APIS_BY_NAME = {api.name: api for api in APIS.values()}


@pytest.mark.parametrize("name", NAMES)
def test_kio_agrees(name):
    agreed = 0
    for side, version, body in bodies(name):
        entity = kio_entity(name, version, side)
        if entity is None:
            continue
        read, end = entity_reader(entity)(body, 0)
        buffer = io.BytesIO()
        entity_writer(entity)(buffer, read)

        assert end == len(body)
        assert buffer.getvalue() == body
        agreed += 1

    assert agreed


def kafka_python_class(name: str) -> Any:
    for module in KAFKA_PYTHON:
        if hasattr(module, name):
            return getattr(module, name)
    return None


KAFKA_PYTHON_NAMES = [
    name
    for name in NAMES
    if name not in READ_BY_TRIAL and kafka_python_class(f"{name}Request") is not None
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", KAFKA_PYTHON_NAMES)
def test_kafka_python_agrees(name):
    agreed = 0
    for side, version, body in bodies(name):
        cls = kafka_python_class(f"{name}{side.capitalize()}")
        if cls is None or not cls.min_version <= version <= cls.max_version:
            continue
        read = cls.decode(body, version=version)
        read._header = None  # what it has decoded it cannot encode until this is set

        assert bytes(read.encode(version=version)) == body
        agreed += 1

    assert agreed
