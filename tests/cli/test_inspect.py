# SPDX-License-Identifier: Apache-2.0
"""`kohort inspect`: what it prints is what runs."""

import linecache

import pytest

from kohort.cli.inspect import _messages
from kohort.wire.apis import APIS
from kohort.wire.messages.offset_commit import OffsetCommitRequest
from kohort.wire.python_codec import decoder, encoder


def source_of(function):
    return "".join(linecache.cache[function.__code__.co_filename][2])


def test_the_source_of_both_functions(kohort):
    ran = kohort("inspect", "codec", "OffsetCommitRequest", "8")
    assert (ran.code, ran.err) == (0, "")
    encode, decode = ran.out.split("\n\n\n")
    ours = encoder(OffsetCommitRequest, 8), decoder(OffsetCommitRequest, 8, None, lenient=False)
    for printed, function in zip((encode, decode), ours, strict=True):
        assert printed.startswith(source_of(function).rstrip())
    comments = [line for line in ran.out.splitlines() if line.startswith("# ")]
    assert "# pack_iqi: pack of Struct('>iqi')" in comments
    assert comments[-1].endswith(": OffsetCommitRequest")
    compile(ran.out, "printed", "exec")


def test_json(kohort):
    found = kohort("inspect", "codec", "offsetcommitREQUEST", "2", "--format", "json").json
    assert found == {
        "message": "OffsetCommitRequest",
        "version": 2,
        "versions": "2-10",
        "flexible": False,
        "encode": source_of(encoder(OffsetCommitRequest, 2)),
        "decode": source_of(decoder(OffsetCommitRequest, 2, None, lenient=False)),
    }


def test_every_message_of_the_wire_and_the_log_can_be_asked_for(kohort):
    names = _messages()
    assert len(names) == 2 * len(APIS) + 22
    for cls in names.values():
        assert kohort("inspect", "codec", cls.__name__, str(cls.versions.last)).code == 0


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("OffsetCommitRequest", "1"), "has no version 1, expected one of 2-10"),
        (("OffsetComitRequest", "8"), "no message 'OffsetComitRequest', expected such as OffsetCo"),
        (("§", "8"), "no message '§', expected such as OffsetCommitRequest"),
        (("OffsetCommitRequest", "-1"), "'-1' is not a version, expected a number from 0"),
        (("OffsetCommitRequest", "x"), "'x' is not a version"),
    ],
)
def test_what_there_is_not(kohort, argv, words):
    ran = kohort("inspect", "codec", *argv)
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.complaints
    assert words in line
