# SPDX-License-Identifier: Apache-2.0
"""Every captured frame of a served API: it decodes to the fields given and encodes
to the same bytes.
"""

from typing import Any

import pytest
from tests.golden import all_frames
from tests.wire.layouts import is_untold

from kohort.terms import uuid_text
from kohort.wire import codec
from kohort.wire.apis import APIS
from kohort.wire.frames import decode_request_header, encode_response, peek
from kohort.wire.schema import Primitive, fields_of

pytestmark = pytest.mark.usefixtures("each_codec")

FRAMES = [frame for frame in all_frames() if frame["api_key"] in APIS]
BY_API = sorted({frame["api"] for frame in FRAMES})


def plain(message: Any, version: int) -> dict[str, Any]:
    """A message in the form of the corpus: upstream's names, ids as text, bytes as hex."""
    out = {}
    for field in fields_of(type(message)):
        if version not in field.versions:
            continue
        value = getattr(message, field.name)
        if is_untold(field, value):
            continue
        if isinstance(field.of, Primitive):
            convert = {"uuid": uuid_text, "bytes": bytes.hex, "records": bytes.hex}.get(
                field.of.name, lambda one: one
            )
        else:

            def convert(one: Any) -> Any:
                return plain(one, version)

        if field.array and value is not None:
            out[field.name] = [convert(one) for one in value]
        else:
            out[field.name] = None if value is None else convert(value)
    return out


def lowered(given: Any) -> Any:
    """The fields of the corpus under names without case and underscores, which
    is all that differs.
    """
    if isinstance(given, dict):
        return {key.replace("_", "").lower(): lowered(value) for key, value in given.items()}
    if isinstance(given, list):
        return [lowered(one) for one in given]
    return given


def without_untold(ours: Any, theirs: Any) -> Any:
    """Tagged fields at their default are not on the wire, and the corpus leaves them out."""
    if isinstance(theirs, dict):
        return {key: without_untold(ours[key], value) for key, value in theirs.items()}
    if isinstance(theirs, list):
        return [without_untold(one, other) for one, other in zip(ours, theirs, strict=True)]
    return ours


@pytest.mark.parametrize("api", BY_API)
def test_requests_and_answers_survive_the_codec(api):
    """Fields equal, and bytes equal after encoding again.

    Holds K40-02, K40-09, K40-10, K709-05, K709-07, K709-08, K848-139, K848-140, K848-151, K848-152,
    K848-153.
    """
    played = 0
    for frame in (one for one in FRAMES if one["api"] == api):
        entry, version = APIS[frame["api_key"]], frame["version"]
        raw = bytes.fromhex(frame["request_hex"])
        flexible = entry.flexible(version)
        header, start = decode_request_header(raw, flexible=flexible)
        request = codec.decode(entry.request, version, raw, start)

        assert peek(raw) == (frame["api_key"], version, frame["correlation"])
        theirs = lowered(frame["request"])
        assert without_untold(lowered(plain(request, version)), theirs) == theirs, frame["name"]
        head = codec.encode(header, 2 if flexible else 1)
        assert head + codec.encode(request, version) == raw, frame["name"]

        if frame["response_hex"]:
            answer(frame, entry, flexible=flexible)
        played += 1

    assert played


def answer(frame: dict[str, Any], entry: Any, *, flexible: bool) -> None:
    raw = bytes.fromhex(frame["response_hex"])
    version = frame["version"]
    tagged_header = flexible and entry.name != "ApiVersions"
    if entry.name == "ApiVersions" and frame["response"]["ErrorCode"] == 35:
        version = 0
    response = codec.decode(entry.response, version, raw, 5 if tagged_header else 4)

    theirs = lowered(frame["response"])
    assert without_untold(lowered(plain(response, version)), theirs) == theirs, frame["name"]
    body = codec.encode(response, version)
    assert encode_response(frame["correlation"], body, flexible=tagged_header)[4:] == raw
