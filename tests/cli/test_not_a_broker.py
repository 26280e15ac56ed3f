# SPDX-License-Identifier: Apache-2.0
"""Every command that asks a cluster, against what is none: one line, code 1, and in JSON a
document that says so.
"""

import contextlib
import socket
import threading

import pytest

COMMANDS = [
    ("groups", "list"),
    ("groups", "describe", "g"),
    ("groups", "describe", "--all"),
    ("groups", "delete", "g", "--yes"),
    ("groups", "delete", "g", "--dry-run"),
    ("topics", "list"),
    ("topics", "create", "t"),
    ("topics", "describe", "t"),
    ("topics", "delete", "t", "--yes"),
    ("topics", "delete", "t", "--dry-run"),
]
HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
SSH = b"SSH-2.0-OpenSSH_9.6\r\n"
TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x0a"

every_command = pytest.mark.parametrize("command", COMMANDS, ids=" ".join)


@contextlib.contextmanager
def stranger(answer):
    """Takes connections, says its own to the first bytes (or nothing, at once), and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    with client:
                        if answer:
                            client.recv(1000)
                            client.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


@every_command
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (HTTP, "speaks HTTP, so it is no Kafka broker; give the port of one"),
        (TLS_ALERT, "speaks TLS, and security.protocol is PLAINTEXT: expected SSL or SASL_SSL"),
        (SSH, "does not speak the Kafka protocol: it sent a frame of 1397966893 bytes, expected"),
    ],
    ids=["http", "tls", "ssh"],
)
def test_another_protocol(kohort, command, answer, told):
    with stranger(answer) as address:
        ran = kohort(*command, "--bootstrap-server", address)
    assert (ran.code, ran.out) == (1, "")
    (line,) = ran.complaints
    assert line.startswith(f"kohort: {address} {told}")


@every_command
def test_one_that_closes_at_once(kohort, command):
    with stranger(b"") as address:
        ran = kohort(*command, "--bootstrap-server", address)
    assert (ran.code, ran.out) == (1, "")
    (line,) = ran.complaints
    assert line.startswith(f"kohort: {address} closed the connection at once")
    may_be = ": it may want TLS (security.protocol is PLAINTEXT), or be no Kafka broker"
    assert line.endswith(may_be)


@every_command
def test_one_that_says_nothing(kohort, command):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        ran = kohort(*command, "--bootstrap-server", address, "--timeout", "0.2")
    assert (ran.code, ran.out) == (1, "")
    assert ran.complaints == [f"kohort: {address} did not answer ApiVersions in time"]


@every_command
def test_nobody_there(kohort, command):
    ran = kohort(*command, "--bootstrap-server", "127.0.0.1:1")
    assert (ran.code, ran.out) == (1, "")
    assert ran.complaints == ["kohort: cannot connect to 127.0.0.1:1: refused"]


@every_command
def test_a_program_that_reads_json_is_told_as_well(kohort, command):
    """`| jq` succeeds on nothing at all."""
    ran = kohort(*command, "--format", "json", "--bootstrap-server", "127.0.0.1:1")
    assert ran.code == 1
    told = "cannot connect to 127.0.0.1:1: refused"
    assert ran.json == {"error": "NETWORK_EXCEPTION", "message": told}
    assert ran.complaints == [f"kohort: {told}"]
