# SPDX-License-Identifier: Apache-2.0
"""TLS of one connection in memory: steps, bounds, and what bytes cost."""

import ssl
from random import Random

import pytest
from tests.certificates import Authority

from kohort.security.settings import Store
from kohort.security.stores import client_context, server_context
from kohort.server.network.tls import FED_AT_ONCE, HANDSHAKE_BYTES_MAX, TlsError, TlsSession

AUTHORITY = Authority()
CONTEXT = server_context(Store(text=AUTHORITY.sign("localhost").pem()))


class Client:
    """The other end."""

    def __init__(self):
        self.coming, self.going = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = client_context(trust=Store(text=AUTHORITY.pem))
        self.tls = context.wrap_bio(self.coming, self.going, server_hostname="localhost")

    def step(self):
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return


@pytest.fixture
def client():
    return Client()


def established(client):
    session = TlsSession(CONTEXT)
    while not session.established:
        client.step()
        session.feed(client.going.read())
        session.step()
        client.coming.write(session.output())
    return session


def test_both_ends_hear_what_the_other_says(client):
    session = established(client)
    client.tls.write(b"request")
    assert session.receive(client.going.read()) == b"request"
    assert session.receive() == b""
    client.coming.write(b"".join(session.send(b"answer")))
    assert client.tls.read() == b"answer"


def pieces(random, data):
    """Cut anywhere, mostly small."""
    while data:
        size = random.choice([1, 2, 5, random.randrange(1, 400), random.randrange(1, 70_000)])
        yield data[:size]
        data = data[size:]


@pytest.mark.parametrize("seed", range(20))
def test_any_fragmentation_means_the_same(client, seed):
    """As the simulator cuts streams that it cannot encrypt: `ssl` draws its own random numbers."""
    random = Random(seed)
    session = TlsSession(CONTEXT)
    asked = [random.randbytes(random.choice([1, 30, 17_000, 90_000])) for _ in range(6)]
    heard = b""
    written = False
    while len(heard) < sum(map(len, asked)):
        client.step()
        if client.tls.version() and not written and not client.going.pending:
            written = True
            for request in asked:
                client.tls.write(request)
        for piece in pieces(random, client.going.read()):
            if session.established:
                heard += session.receive(piece)
            else:
                session.feed(piece)
                session.step()
                if session.established:
                    heard += session.receive()
        for piece in pieces(random, session.output()):
            client.coming.write(piece)
            client.step()
    assert heard == b"".join(asked)
    for answer in asked:
        for piece in pieces(random, b"".join(session.send(answer))):
            client.coming.write(piece)
        got = b""
        while len(got) < len(answer):
            got += client.tls.read(1 << 20)
        assert got == answer


def test_what_comes_with_the_end_of_the_handshake_is_kept(client):
    session = TlsSession(CONTEXT)
    client.step()
    session.feed(client.going.read())
    session.step()
    client.coming.write(session.output())
    client.step()
    client.tls.write(b"early")
    session.feed(client.going.read())
    session.step()
    assert session.established
    assert session.receive() == b"early"


def test_large_answers_go_in_pieces_and_large_requests_are_fed_in_some(client):
    session = established(client)
    large = bytes(range(256)) * 4096
    parts = session.send(large)
    assert len(parts) > 1
    client.coming.write(b"".join(parts))
    got = b""
    while len(got) < len(large):
        got += client.tls.read(1 << 20)
    assert got == large
    client.tls.write(large)
    assert session.receive(client.going.read()) == large
    assert session._in.pending < FED_AT_ONCE


def test_a_handshake_has_a_bound(client):
    session = TlsSession(CONTEXT)
    client.step()
    hello = client.going.read()
    for octet in hello[:-1]:
        session.feed(bytes([octet]))
        session.step()
    session.fed_bytes = HANDSHAKE_BYTES_MAX
    session.feed(hello[-1:])
    with pytest.raises(TlsError, match="and does not end, expected at most 131072"):
        session.step()


def test_a_closed_end_is_told(client):
    session = established(client)
    client.coming.write(session.close())
    assert client.tls.read() == b""


def test_the_end_of_the_client_is_heard(client):
    session = established(client)
    client.tls.write(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.unwrap()
    assert session.receive(client.going.read()) == b"last"
    assert session.ended


def test_a_record_that_was_changed_ends_the_connection(client):
    session = established(client)
    client.tls.write(b"request")
    record = bytearray(client.going.read())
    record[-1] ^= 1
    with pytest.raises(TlsError, match="bad record mac"):
        session.receive(bytes(record))
