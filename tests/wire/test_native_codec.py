"""The native codec says what the codec in Python says, of whatever it is given, and says nearly all
of it itself.
"""

import pytest
from tests.each_codec import native_codec
from tests.golden import all_frames

from kohort.errors import WireError
from kohort.wire import python_codec
from kohort.wire.apis import APIS
from kohort.wire.frames import decode_request_header
from kohort.wire.messages.list_groups import ListGroupsRequest
from kohort.wire.messages.metadata import MetadataRequest

native = native_codec()  # or all of these are skipped


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

    for name in ("decoder",):
        monkeypatch.setattr(python_codec, name, handed_over)


def test_recorded_messages_are_read_without_the_other_codec(monkeypatch):
    oracles = [
        (*one, python_codec.decoder(*one[:2], None, lenient=False)(*one[2:])) for one in recorded()
    ]
    refuse_to_hand_over(monkeypatch)
    for cls, version, data, start, expected in oracles:
        assert native.decoder(cls, version, None, lenient=False)(data, start) == expected
    assert len(oracles) > 4000


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
