# SPDX-License-Identifier: Apache-2.0
"""An answer of many megabytes on a listener of TLS is encrypted in parts, in the turn of others."""

import random
import ssl
from typing import Any

import pytest
from tests.certificates import Authority
from tests.serve.talk import Talk
from tests.server.tls_broker import TlsBroker

from kohort.server.network.tls import WRITTEN_AT_ONCE, TlsSession
from kohort.server.network.tls_sockets import AHEAD_BYTES, ENCRYPTED_AT_ONCE, TlsTransport

SIZE = 10 << 20


class Below:
    """A socket whose client takes nothing until it is told to."""

    def __init__(self) -> None:
        self.sent, self.size, self.closed = b"", 0, False
        self.get_extra_info = self.pause_reading = self.resume_reading = self.abort = None

    def get_write_buffer_size(self) -> int:
        return self.size

    def write(self, data: bytes) -> None:
        self.sent += data
        self.size += len(data)

    def writelines(self, parts: list[bytes]) -> None:
        self.write(b"".join(parts))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Session:
    """Encrypts nothing, and counts what it was given."""

    established = True

    def __init__(self) -> None:
        self.pieces: list[int] = []

    def send(self, data: memoryview) -> list[bytes]:
        self.pieces.append(len(data))
        return [bytes(data)]

    def close(self) -> bytes:
        return b"the end"


@pytest.fixture
def transport() -> Any:
    below, held = Below(), []
    found: Any = TlsTransport(below, lambda: held.append(True))  # type: ignore[arg-type]
    found.session, found.held = Session(), held
    return found


def whole(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def test_a_small_answer_leaves_at_once(transport: Any) -> None:
    data = whole(ENCRYPTED_AT_ONCE)
    transport.writelines([data[:100], b"", data[100:]])
    assert (transport.below.sent, transport.left_bytes, transport.held) == (data, 0, [])


def test_a_slice_encrypts_a_part_and_a_client_that_reads_nothing_holds_the_rest(
    transport: Any,
) -> None:
    data = whole(SIZE)
    transport.writelines([data[: SIZE // 3], data[SIZE // 3 :]])
    assert len(transport.below.sent) <= ENCRYPTED_AT_ONCE + WRITTEN_AT_ONCE
    assert transport.held == [True]
    transport.write(b"behind it")  # it does not overtake
    assert transport.get_write_buffer_size() == SIZE + len(b"behind it")
    while transport.left_bytes:
        before = len(transport.session.pieces)
        more = transport.encrypt(lambda: True)  # a slice that is over at once
        assert sum(transport.session.pieces[before:]) < 2 * WRITTEN_AT_ONCE
        if not more and transport.left_bytes:
            assert transport.below.size >= AHEAD_BYTES
            transport.below.size = 0  # the client has read
    assert transport.below.sent == data + b"behind it"
    assert max(transport.session.pieces) <= WRITTEN_AT_ONCE
    assert transport.held == [True]


def test_what_is_left_is_sent_before_the_end(transport: Any) -> None:
    data = whole(AHEAD_BYTES)
    transport.write(data)
    transport.close()
    assert transport.is_closing()
    assert not transport.below.closed
    transport.write(b"too late")
    transport.below.size = 0
    assert not transport.encrypt(lambda: False)
    assert transport.below.sent == data + b"the end"
    assert transport.below.closed


def test_a_connection_that_is_lost_holds_nothing(transport: Any) -> None:
    transport.write(whole(SIZE))
    transport.forget()
    assert transport.left_bytes == 0
    assert not transport.encrypt(lambda: False)


class TlsTalk(Talk):
    def __init__(self, address: Any, context: ssl.SSLContext) -> None:
        super().__init__(address)
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")


def test_a_large_fetch_arrives_whole_and_in_slices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Pipelined, from a client that reads late."""
    authority = Authority()
    keystore = authority.sign("localhost").write_pem(tmp_path / "server.pem")
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "message.max.bytes": str(SIZE),
    }
    pieces: list[int] = []
    send = TlsSession.send

    def counted(session: TlsSession, data: memoryview) -> list[bytes]:
        pieces.append(len(data))
        return send(session, data)

    monkeypatch.setattr(TlsSession, "send", counted)
    context = ssl.create_default_context(cadata=authority.pem)
    with TlsBroker(settings) as broker:
        address = broker.broker.addresses[0]
        with TlsTalk(address, context) as client:
            client.create_topic("t")
            values = [whole(1_000_000 + index) for index in range(9)]
            for value in values:
                assert client.produce("t", value).error_code == 0
            del pieces[:]
            for _ in range(3):
                client.send(client.fetch_request("t"), 12)
            with TlsTalk(address, context) as other:
                other.send(other.fetch_request("t"), 12)
                answers = [other.answer()[4:]]
            answers += [client.answer()[4:] for _ in range(3)]
            assert len(answers[0]) > 9_000_000
            assert all(value in answers[0] for value in values)
            assert len(set(answers)) == 1
        assert max(pieces) <= WRITTEN_AT_ONCE
        assert not broker.observer.warnings
        assert not broker.observer.errors
