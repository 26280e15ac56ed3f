# SPDX-License-Identifier: Apache-2.0
"""The native codec says what the codec in Python says, of whatever it is given, and says nearly all
of it itself.
"""

import gc
import sys
from array import array
from random import Random

import pytest
from tests.each_codec import native_codec
from tests.golden import all_frames

from kohort.errors import WireError
from kohort.wire import codec, python_codec
from kohort.wire.apis import APIS
from kohort.wire.columns import Columns
from kohort.wire.frames import decode_request_header
from kohort.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kohort.wire.messages.metadata import MetadataRequest
from kohort.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kohort.wire.schema import Int32, String, at, record, struct

native = native_codec()  # or all of these are skipped

from tests.wire import both_codecs  # noqa: E402  (it needs the native one)


def newest(random):
    """Each class in its newest version and in one other: making the functions takes the time."""
    for cls in both_codecs.CLASSES:
        first, last = cls.versions
        yield from ((cls, version) for version in {last, random.randint(first, last)})


def test_both_say_the_same():
    random = Random(1)
    pairs = list(newest(random))
    for cls, version in pairs * 2:
        both_codecs.play(random, cls, version)
    assert len(pairs) > 190


@pytest.mark.parametrize("version", range(3))
def test_both_say_the_same_of_every_kind_of_field(version):
    random = Random(version)
    for _ in range(300):
        both_codecs.play(random, both_codecs.Everything, version)


def recorded():
    """Each recorded message: its class and version, its bytes, and where it begins in them."""
    for frame in all_frames():
        api, version = APIS.get(frame["api_key"]), frame["version"]
        if api is None or version not in api.versions:
            continue
        flexible = api.flexible(version)
        data = bytes.fromhex(frame["request_hex"])
        yield api.request, version, data, decode_request_header(data, flexible=flexible)[1]
        if frame["response_hex"] and frame["response"].get("ErrorCode") != 35:
            data = bytes.fromhex(frame["response_hex"])
            yield api.response, version, data, 5 if flexible and api.name != "ApiVersions" else 4


def refuse_to_hand_over(monkeypatch):
    """From now on a call that is handed over fails, in functions that are made anew."""

    def handed_over(*_, **__):
        raise AssertionError("it was handed over")

    for name in ("encoder", "decoder", "elements_encoder", "around_encoder"):
        monkeypatch.setattr(python_codec, name, handed_over)


def test_recorded_messages_are_read_and_written_without_the_other_codec(monkeypatch):
    oracles = [
        (*one, python_codec.decoder(*one[:2], None, lenient=False)(*one[2:])) for one in recorded()
    ]
    refuse_to_hand_over(monkeypatch)
    for cls, version, data, start, expected in oracles:
        found = native.decoder(cls, version, None, lenient=False)(data, start)
        assert found == expected
        assert native.encoder(cls, version)(found[0]) == data[start:]
    assert len(oracles) > 4000


def test_what_a_version_can_carry_is_written_without_the_other_codec(monkeypatch):
    random = Random(2)
    refuse_to_hand_over(monkeypatch)
    for cls, version in both_codecs.VERSIONED:
        drawn = both_codecs.message(random, cls, version)
        data = native.encoder(cls, version)(drawn)
        read = native.decoder(cls, version, None, lenient=False)(data, 0)
        assert read[1] == len(data)
        assert native.encoder(cls, version)(read[0]) == data


def test_columns_are_written_without_the_other_codec(monkeypatch):
    refuse_to_hand_over(monkeypatch)
    wide, narrow, texts = array("q", [7, 8]), array("i", [-1, 3]), ["", "x"]
    partitions = Columns(OffsetFetchResponsePartitions, ([0, 1], wide, narrow, texts))
    topic = OffsetFetchResponseTopics(name="t", partitions=partitions)
    groups = [OffsetFetchResponseGroup(group_id="g", topics=[topic])]
    data = native.encoder(OffsetFetchResponse, 8)(OffsetFetchResponse(groups=groups))
    topic.partitions = [*partitions]
    assert native.encoder(OffsetFetchResponse, 8)(OffsetFetchResponse(groups=groups)) == data


def test_numbers_at_any_address_are_a_column():
    """A view of an array may begin in the middle of a word."""
    values = array("q", [7, -(1 << 40), 9])
    odd = memoryview(b"x" + values.tobytes())[1:].cast("q")
    for column in (values, odd, memoryview(values.tobytes())):  # the last one is of bytes
        columns = Columns(OffsetFetchResponsePartitions, ([*range(len(column))], column))
        topic = OffsetFetchResponseTopics(name="t", partitions=columns)
        groups = [OffsetFetchResponseGroup(group_id="g", topics=[topic])]
        assert both_codecs.agree_on_message(
            OffsetFetchResponse, 8, OffsetFetchResponse(groups=groups)
        )


@pytest.mark.parametrize("convert", [bytearray, memoryview, list], ids=lambda one: one.__name__)
def test_bytes_of_another_type_are_handed_over(convert):
    data = convert(codec.encode(ListGroupsRequest(states_filter=["Stable"]), 4))
    both_codecs.agree_on_bytes(ListGroupsRequest, 4, data, 0, None)


@pytest.mark.parametrize("arguments", [(), (b"",), (b"", 0, 0), (b"", "0"), (0, b"")], ids=str)
def test_wrong_arguments_are_refused_as_before(arguments):
    theirs = native.decoder(ListGroupsRequest, 4, None, lenient=False)
    with pytest.raises(TypeError):
        theirs(*arguments)
    around = native.around_encoder(ListGroupsResponse, 4, "groups", flexible=True)
    with pytest.raises((TypeError, AttributeError)):
        around(*arguments)


@pytest.mark.parametrize(
    ("cls", "version", "data"),
    [
        pytest.param(MetadataRequest, 0, b"\x7f\xff\xff\xff" + bytes(100), id="of strings"),
        pytest.param(MetadataRequest, 12, b"\xff\xff\xff\xff\x07" + bytes(100), id="of structs"),
        pytest.param(ListGroupsRequest, 4, b"\x01\xff\xff\xff\xff\x0f" + bytes(100), id="of tags"),
    ],
)
def test_a_huge_count_allocates_nothing(cls, version, data, monkeypatch):
    """Two billion elements would be 16 GB of pointers."""
    refuse_to_hand_over(monkeypatch)
    with pytest.raises(AssertionError, match="handed over"):
        native.decoder(cls, version, None, lenient=False)(data, 0)


def test_the_reason_of_a_refusal_is_the_other_codec_s():
    """A user sees it in the broker's log."""
    for chosen in (native, python_codec):
        decode = chosen.decoder(ListGroupsRequest, 4, 1, lenient=False)
        with pytest.raises(WireError, match="states_filter it has 2 elements, expected at most 1"):
            decode(b"\x03\x02a\x02b\x00", 0)


@record(versions="0-1", flexible="1+")
class Evolving:
    """Fields come and go in the middle, and one that may be null has a list as its default."""

    first: Int32 = at("1+", default=7)
    names: list[String] | None = at("0", default=[])
    last: String = ""


def test_a_default_that_changes_is_made_anew():
    one, other = (codec.decode(Evolving, 1, b"\0\0\0\1\1\0") for _ in range(2))
    one.names.append("x")
    assert (one.first, other.names) == (1, [])
    assert codec.decode(Evolving, 0, b"\0\0\0\0\0\1z") == Evolving(first=7, names=[], last="z")


def every_call(random, calls):
    """Decode every message, whole and damaged, and encode what is wrong with it."""
    for cls, version, data, fields in calls:
        decode = native.decoder(cls, version, 1000, lenient=False)
        both_codecs.outcome(decode, data, 0)
        both_codecs.outcome(decode, both_codecs.damage(random, data), 0)
        both_codecs.outcome(native.encoder(cls, version), fields)


def test_nothing_leaks():
    """Also not where a call ends halfway: blocks of memory are as many as before."""
    random = Random(3)
    calls = []
    for cls, version in newest(random):
        drawn = both_codecs.message(random, cls, version)
        data = native.encoder(cls, version)(drawn)
        both_codecs.keep_by_field(random, drawn)
        both_codecs.bend(random, drawn)
        calls.append((cls, version, data, drawn))
    every_call(Random(4), calls)
    counts = []
    for _ in range(3):
        every_call(Random(4), calls)
        gc.collect()
        counts.append(sys.getallocatedblocks())
    assert counts[2] - counts[1] < 20, counts


def test_references_are_given_back():
    """What a message has belongs to it alone once it is decoded, and is not kept by an encoder."""
    listed = ListedGroup(group_id="group-" + "x" * 9, protocol_type="p", group_state="s")
    answer = ListGroupsResponse(groups=[listed])
    counts = [sys.getrefcount(one) for one in (answer, answer.groups, listed, listed.group_id)]
    for _ in range(100):
        data = native.encoder(ListGroupsResponse, 4)(answer)
    after = [sys.getrefcount(one) for one in (answer, answer.groups, listed, listed.group_id)]
    assert after == counts
    read, _ = native.decoder(ListGroupsResponse, 4, None, lenient=False)(data, 0)
    fresh = ListGroupsResponse(groups=[ListedGroup(group_id="g" * 15)])
    assert sys.getrefcount(read) == sys.getrefcount(fresh)
    assert sys.getrefcount(read.groups) == sys.getrefcount(fresh.groups)
    assert sys.getrefcount(read.groups[0]) == sys.getrefcount(fresh.groups[0])


def test_a_comparison_that_changes_the_message_is_survived():
    """A tagged struct is compared with its default, and code of others may run in that."""
    from kohort.wire.messages.fetch import FetchRequest, FetchTopic, ReplicaState

    request = FetchRequest(topics=[FetchTopic() for _ in range(50)])

    class Meddler(int):
        def __eq__(self, other):
            request.topics = []
            request.replica_state = None
            gc.collect()
            return False

        __hash__ = int.__hash__

    request.replica_state = ReplicaState(replica_id=Meddler(3))
    both_codecs.outcome(native.encoder(FetchRequest, 15), request)
    assert request.topics == []


@struct
class Inner:
    number: Int32 = 0


@record(flexible="0+")
class Nested:
    """A struct that may be null, once among the plain fields and once in a tag."""

    plain: Inner | None = None
    tagged: Inner | None = at(tag=0, default=None)


def test_every_byte_that_may_say_whether_a_struct_is_there():
    for mark in range(256):
        present = bytes([mark, 0, 0, 0, 7, 0])
        both_codecs.agree_on_bytes(Nested, 0, present + b"\x00", 0, None)
        both_codecs.agree_on_bytes(Nested, 0, present[:1] + b"\x00", 0, None)
        in_tag = b"\xff\x01\x00\x06" + present
        both_codecs.agree_on_bytes(Nested, 0, in_tag, 0, None)
        both_codecs.agree_on_bytes(Nested, 0, in_tag[:5], 0, None)


def test_every_varint_of_a_length():
    """Canonical or not, of up to six bytes."""
    for last in range(256):
        for more in range(6):
            length = b"\x80" * more + bytes([last])
            both_codecs.agree_on_bytes(ListGroupsRequest, 4, b"\x02" + length + b"x" * 140, 0, None)
            both_codecs.agree_on_bytes(ListGroupsRequest, 4, length + b"\x01" * 300, 0, 130)
