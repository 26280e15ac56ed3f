# SPDX-License-Identifier: Apache-2.0
"""`kohort serve`: the ready line, the order of settings, a clean end, and every refusal."""

import argparse
import errno
import fcntl
import os
import pty
import re
import select
import signal
import socket
import ssl
import subprocess
import sys
import termios
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.certificates import Authority
from tests.waiting import SOON_S

from kohort.cli import serve
from kohort.config import BrokerConfig
from kohort.config.listeners import client_listeners


def start(*argv, **options):
    process = subprocess.Popen(
        [sys.executable, "-m", "kohort", "serve", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    assert select.select([process.stdout], [], [], SOON_S)[0]
    return process, process.stdout.readline()


def finished(*argv):
    return subprocess.run(
        [sys.executable, "-m", "kohort", "serve", *argv],
        capture_output=True,
        text=True,
        timeout=SOON_S,
        check=False,
    )


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_one_ready_line_and_a_clean_end(tmp_path, how):
    process, ready = start("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "new"))
    with process:
        match = re.fullmatch(r"kohort ready on 127\.0\.0\.1:(\d+) \(data in (\S+)\)\n", ready)
        assert match, ready
        with socket.create_connection(("127.0.0.1", int(match[1])), SOON_S):
            process.send_signal(how)  # a client that stays does not hold it up
            assert process.wait(SOON_S) == 0
        assert process.stdout.read() == ""
    assert (tmp_path / "new").is_dir()


def test_an_assignor_that_is_not_installed_is_a_wrong_call(tmp_path):
    directory = tmp_path / "data"
    done = finished("--data-dir", str(directory), "-X", "group.consumer.assignors=uniform,uniforn")
    assert (done.returncode, done.stdout) == (2, "")
    assert "group.consumer.assignors has 'uniforn', expected a list out of" in done.stderr
    assert not directory.exists()


def test_each_node_has_an_address():
    process, ready = start("--listen", "127.0.0.1:0", "--in-memory", "--nodes", "3")
    with process:
        addresses = ready.split(" on ")[1].split()[0].split(",")
        assert len(set(addresses)) == 3
        for address in addresses:
            host, port = address.split(":")
            socket.create_connection((host, int(port)), SOON_S).close()
        process.terminate()
        assert process.wait(SOON_S) == 0


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = finished("--listen", f"127.0.0.1:{port}", "--in-memory")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"kohort: serve: cannot listen on 127.0.0.1:{port}: the port is taken\n"


def test_a_directory_that_is_in_use(tmp_path):
    process, _ = start("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path))
    with process:
        done = finished("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path))
        process.terminate()
        process.wait(SOON_S)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert str(tmp_path) in line


def test_a_directory_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    done = finished("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "file"))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert str(tmp_path / "file") in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_is_not_writable(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    done = finished("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "closed"))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert str(tmp_path / "closed") in line


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--in-memory", "--listen", "9092"], "'9092' is not an address, expected HOST:PORT"),
        (["--in-memory", "--listen", "a:99999"], "'a:99999' has port 99999, expected 0 to 65535"),
        (["--in-memory", "--metrics", "99999"], "port 99999, expected 0 to 65535"),
        (["--in-memory", "--metrics", "foo"], "'foo' is not an address, expected PORT or HOST:"),
        (["--in-memory", "--nodes", "0"], "'0' is not a number of nodes"),
        (["--in-memory", "-X", "nonsense"], "expected NAME=VALUE; the text is not shown"),
        (["--in-memory", "--data-dir", "x"], "not allowed with argument --in-memory"),
        ([], "no place for the logs is given, expected --data-dir DIR, where they outlast the"),
        (["--in-memory", "-X", "num.partitions=0"], "num.partitions is '0', expected"),
        (["--in-memory", "-X", "no.such.setting=0"], "no.such.setting"),
        (
            ["--in-memory", "--config", "missing.properties"],
            "serve: cannot read --config missing.properties: No such file or directory",
        ),
        (["--in-memory", "--config", "/"], "cannot read --config /: Is a directory"),
        (["--in-memory", "-X", "listeners=SSL://:9093"], "SSL (SSL): it has no certificate"),
        (
            ["--in-memory", "-X", "listeners=PLAINTEXT://:9092,PLAINTEXT://127.0.0.1:9093"],
            "listeners has the name PLAINTEXT twice, expected each name once",
        ),
        (
            [
                *("--in-memory", "-X", "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"),
                *("-X", "listeners=A://:9092,B://:9092"),
            ],
            "listeners has port 9092 for A and for B, expected a port for each",
        ),
        (
            ["--in-memory", "-X", "advertised.listeners=PLAINTEXT://a:1,PLAINTEXT://b:1"],
            "advertised.listeners has PLAINTEXT twice, expected each name once",
        ),
        (
            ["--in-memory", "-X", "listeners=PLAINTEXT://h:x"],
            "listeners has 'PLAINTEXT://h:x': 'h:x'",
        ),
        (
            ["--in-memory", "--nodes", "2", "-X", "broker.rack=a,b,c"],
            "serve: broker.rack is 'a,b,c', which are 3 racks, expected at most 2",
        ),
    ],
)
def test_what_is_refused_before_anything_is_opened(kohort, argv, words):
    ran = kohort("serve", *argv)
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.complaints
    assert words in line
    assert "Errno" not in line


MORE_THAN_PLAIN = [
    {"listeners": "SSL://127.0.0.1:0"},
    {"listeners": "sasl_ssl://127.0.0.1:0"},
    {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"},
    {"listeners": "CLIENTS://127.0.0.1:0"},
    {"listeners": "CLIENTS://h:0", "listener.security.protocol.map": "CLIENTS:SSL"},
    {"listener.security.protocol.map": "PLAINTEXT:SSL"},
    {"listener.security.protocol.map": "plaintext:Sasl_Ssl"},
    {"listener.security.protocol.map": "PLAINTEXT"},
    {"listener.security.protocol.map": "PLAINTEXT:TLS"},
    {"advertised.listeners": "SSL://127.0.0.1:9"},
    {"advertised.listeners": "PLAINTEXT://127.0.0.1:9,SASL_SSL://127.0.0.1:9"},
    {"security.inter.broker.protocol": "TLS"},
]


@pytest.mark.parametrize("settings", MORE_THAN_PLAIN)
@pytest.mark.parametrize("more", [[], ["--listen", "127.0.0.1:0"], ["--nodes", "2"]])
@pytest.mark.parametrize("in_file", [False, True])
def test_a_listener_that_asks_for_more_than_plain_text_is_refused(
    kohort, tmp_path, settings, more, in_file
):
    """Wherever it is said, and whatever says where to listen: never silently plain."""
    lines = [f"{name}={text}" for name, text in settings.items()]
    argv = [part for line in lines for part in ("-X", line)]
    if in_file:
        file = tmp_path / "server.properties"
        file.write_text("\n".join(lines))
        argv = ["--config", str(file)]
    ran = kohort("serve", "--in-memory", *argv, *more)
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.complaints
    told = (*settings, "ssl.keystore.location", "beside listeners")
    assert any(name in line for name in told)
    assert "expected" in line


@pytest.mark.parametrize(
    "listeners", ["SASL_PLAINTEXT://127.0.0.1:0", "PLAINTEXT://127.0.0.1:0,A://127.0.0.1:0"]
)
def test_an_address_beside_listeners_of_more_than_plain_text_is_refused(kohort, listeners):
    """--listen is one listener of plain text: the others would be left out in silence."""
    named = ("-X", f"listeners={listeners}", "-X", "listener.security.protocol.map=A:PLAINTEXT")
    ran = kohort("serve", "--in-memory", *named, "--listen", "127.0.0.1:0")
    assert (ran.code, ran.out) == (2, "")
    assert "given beside listeners" in ran.complaints[0]
    assert "expected one of the two (--listen, listeners)" in ran.complaints[0]


def test_what_the_settings_of_a_usual_kafka_say_of_listeners_is_taken():
    """Names are those of upstream in any case, and controllers' listeners are not opened."""
    config = BrokerConfig.of(
        {
            "listeners": "plaintext://:9092,CONTROLLER://:9093",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "security.inter.broker.protocol": "PLAINTEXT",
            "listener.security.protocol.map": (
                "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL"
            ),
        }
    )
    assert client_listeners(config) == (("PLAINTEXT", "PLAINTEXT", "0.0.0.0", 9092),)


def test_a_file_of_settings_that_is_no_text(kohort, tmp_path):
    (tmp_path / "binary").write_bytes(b"node.id=1\n\xff")
    ran = kohort("serve", "--in-memory", "--config", str(tmp_path / "binary"))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("binary: byte 10 is not UTF-8\n")


def test_all_mistakes_of_a_file_are_told_with_their_lines(kohort, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("# ours\nnum.partitions=x\nnode.id=7\n\nlog.roll.ms=\\\n  soon\nbroker.id=-9\n")
    ran = kohort("serve", "--in-memory", "--config", str(file), "-X", "num.partitons=3")
    assert (ran.code, ran.out) == (2, "")
    first, second, third, fourth = ran.complaints
    assert first.startswith(f"kohort: serve: {file}, line 2: num.partitions is 'x', expected")
    assert second.startswith(f"kohort: serve: {file}, line 5: log.roll.ms is 'soon', expected")
    assert third.startswith(f"kohort: serve: {file}, line 7: node.id is '-9', expected")
    assert fourth.startswith("kohort: serve: num.partitons is not a setting; did you mean num.part")
    ran = kohort("serve", "--in-memory", "--config", str(file), "-X", "num.partitions=0")
    assert ran.complaints[-1].startswith("kohort: serve: num.partitions is '0', expected")


def arguments(**given):
    empty = {"config": None, "settings": [], "in_memory": False, "data_dir": None}
    empty["listen"] = None
    return argparse.Namespace(**{**empty, **given})


def test_settings_stand_above_the_file(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nnode.id=7\nbackground.threads=4\n")
    config = serve._config(
        arguments(config=file, settings=[("num.partitions", "4"), ("num.partitions", "5")])
    )
    assert (config.num_partitions, config.node_id) == (5, 7)
    assert config.ignored == ("background.threads",)
    file.write_text("broker.id=7\n")
    config = serve._config(arguments(config=file, settings=[("node.id", "8")]))
    assert config.node_id == 8


def test_flags_stand_above_settings(tmp_path):
    config = BrokerConfig.of({"log.dirs": str(tmp_path)})
    assert serve._data_dir(arguments(), config) == tmp_path
    assert serve._data_dir(arguments(data_dir=tmp_path / "x"), config) == tmp_path / "x"
    assert serve._data_dir(arguments(in_memory=True), config) is None


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, ("127.0.0.1", 9092)),
        ({"listeners": "PLAINTEXT://localhost:9099"}, ("localhost", 9099)),
        ({"listeners": "PLAINTEXT://:9099"}, ("0.0.0.0", 9099)),
        (
            {
                "listeners": "CONTROLLER://:9093,CLIENTS://h:1",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,CLIENTS:PLAINTEXT",
            },
            ("h", 1),
        ),
    ],
)
def test_the_first_listener_for_clients(settings, address):
    (listener,) = client_listeners(BrokerConfig.of(settings))
    assert (listener.host, listener.port) == address


def test_listening_beyond_this_machine_is_warned_of(tmp_path):
    """K848-193: and so are settings that mean nothing."""
    process, ready = start(
        "--listen",
        "0.0.0.0:0",
        "--in-memory",
        "-X",
        "background.threads=4",
        "-X",
        "log.preallocate=true",
    )
    with process:
        assert ready.startswith("kohort ready on")
        process.terminate()
        assert process.wait(SOON_S) == 0
        said = process.stderr.read()
    assert "listening on 0.0.0.0, beyond this machine, without encryption" in said
    assert "settings that mean nothing here: background.threads" in said
    assert "settings that have no effect yet: log.preallocate" in said


def test_a_port_for_root_is_refused_in_a_plain_sentence():
    error = OSError(errno.EACCES, "error while attempting to bind on address ('127.0.0.1', 80)")
    told = "cannot listen on 127.0.0.1:80: permission denied, since ports below 1024 are for root"
    for data_dir in (None, Path("data")):
        assert serve._os_reason(error, ("127.0.0.1", 80), data_dir) == told


NOTHING_TO_READ = "no certificate is read again: no listener speaks TLS"
SASL = ("-X", "sasl.enabled.mechanisms=SCRAM-SHA-256")
LISTENERS = {
    "plain": ("--listen", "127.0.0.1:0"),
    "SASL": ("-X", "listeners=SASL_PLAINTEXT://127.0.0.1:0", *SASL),
}


@contextmanager
def ended(process):
    """It does not outlive its test."""
    with process:
        try:
            yield
        finally:
            process.kill()


def read_until(process, text):
    while text not in (line := process.stderr.readline()):
        assert line, f"it has ended without {text!r}"


@pytest.mark.parametrize("listener", LISTENERS)
def test_a_hangup_without_a_certificate_is_a_line(listener):
    """It used to end a broker of plain text: one command for all brokers took some of them down."""
    process, _ = start("--in-memory", *LISTENERS[listener])
    with ended(process):
        for _ in range(2):
            process.send_signal(signal.SIGHUP)
            read_until(process, NOTHING_TO_READ)
        process.terminate()
        assert process.wait(SOON_S) == 0


@pytest.mark.parametrize("nohup", [False, True])
def test_the_end_of_its_terminal_ends_a_broker(nohup):
    """Also one in the background of a shell, which nobody could find any more."""
    ours, theirs = pty.openpty()

    def become_foreground():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        # The tests themselves may have been started with nohup.
        signal.signal(signal.SIGHUP, signal.SIG_IGN if nohup else signal.SIG_DFL)

    process, _ = start(
        *("--in-memory", "--listen", "127.0.0.1:0"),
        stdin=theirs,
        start_new_session=True,
        preexec_fn=become_foreground,
    )
    with ended(process):
        process.send_signal(signal.SIGHUP)
        read_until(process, NOTHING_TO_READ)
        os.close(theirs)
        os.close(ours)
        if nohup:
            read_until(process, NOTHING_TO_READ)
            process.terminate()
        assert process.wait(SOON_S) == 0
        assert process.stderr.read() == ""


def test_a_hangup_reads_the_certificates_anew(tmp_path):
    """SEC-23. The ready line names each listener."""
    authority = Authority()
    keystore = authority.sign("localhost").write_pem(tmp_path / "server.pem")
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
    }
    flags = [part for name, text in settings.items() for part in ("-X", f"{name}={text}")]
    process, ready = start("--in-memory", *flags)
    with process:
        found = re.fullmatch(
            r"kohort ready on 127\.0\.0\.1:\d+ \(in memory\), SSL \(SSL\) on 127\.0\.0\.1:(\d+)\n",
            ready,
        )
        assert found
        authority.sign("localhost").write_pem(keystore)
        process.send_signal(signal.SIGHUP)
        told = ""
        while "listener SSL shows the certificate of CN=localhost" not in told:
            told = process.stderr.readline()
            assert told
        context = ssl.create_default_context(cadata=authority.pem)
        with (
            socket.create_connection(("127.0.0.1", int(found[1])), timeout=SOON_S) as below,
            context.wrap_socket(below, server_hostname="localhost") as sock,
        ):
            shown = sock.getpeercert(binary_form=True)
        process.terminate()
        assert process.wait(SOON_S) == 0
    assert ssl.DER_cert_to_PEM_cert(shown) in keystore.read_text()
