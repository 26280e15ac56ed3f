# SPDX-License-Identifier: Apache-2.0
"""docs/security.md, "In five minutes": everything that stands there is done as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.certificates import Authority
from tests.peers.kafka import Kafka, unavailable
from tests.ports import free_ports
from tests.waiting import SOON_S

from kohort.config import BrokerConfig, read_properties
from kohort.config.listeners import client_listeners
from kohort.server.secure_listeners import check_security

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
GUIDE = PAGE.read_text(encoding="utf-8").split("\n## In five minutes\n")[1].split("\n## ")[0]
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", GUIDE, re.DOTALL)
MAKES = ("confluent-kafka", "kafka-python", "aiokafka", "Kohort")

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


def blocks(kind):
    return [text for found, text in BLOCKS if found == kind]


class Guide:
    """The files of the page in a directory, and its commands, on a port of our own."""

    def __init__(self, folder):
        self.folder = folder
        (self.port,) = free_ports(1)
        for kind in ("properties", "toml"):
            for text in blocks(kind):
                name = re.match(r"# ([\w.]+)", text)[1]
                (folder / name).write_text(self.here(text))
                (folder / name).chmod(0o600)
        authority, self.use = blocks("sh")
        self.shell(authority)

    def here(self, text):
        return text.replace("9093", str(self.port))

    def shell(self, text):
        program = f'kohort() {{ "{sys.executable}" -m kohort "$@"; }}\nset -e\n{self.here(text)}'
        return self.run("bash", "-c", program)

    def run(self, *command):
        password = self.folder / "alice.password"
        env = {
            **{name: text for name, text in os.environ.items() if not name.startswith("KOHORT_")},
            "PASSWORD": password.read_text().strip() if password.exists() else "",
        }
        done = subprocess.run(
            command,
            cwd=self.folder,
            capture_output=True,
            text=True,
            env=env,
            timeout=SOON_S * 4,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done


def settings_of(guide):
    found = read_properties((guide.folder / "broker.properties").read_text())
    return {**found, "ssl.keystore.location": str(guide.folder / found["ssl.keystore.location"])}


@pytest.fixture(
    scope="module",
    params=[
        "kohort",
        pytest.param(
            "kafka",
            marks=[
                pytest.mark.java,
                pytest.mark.skipif(unavailable() is not None, reason=str(unavailable())),
            ],
        ),
    ],
)
def guide(request, tmp_path_factory):
    made = Guide(tmp_path_factory.mktemp("guide"))
    with kafka(made) if request.param == "kafka" else kohort(made):
        made.done = made.shell(made.use)
        yield made


def kafka(guide):
    broker = Kafka(heap="512M")
    base, own = broker.properties(), settings_of(guide)
    broker.settings.update(
        {
            **own,
            "listeners": f"{base['listeners']},{own['listeners']}",
            "advertised.listeners": f"{base['advertised.listeners']},{own['listeners']}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "SASL_SSL:SASL_SSL",
            "super.users": "User:admin;User:ANONYMOUS",  # those who are its own controller
        }
    )
    return broker


class kohort:  # noqa: N801  (beside `kafka`)
    """`kohort serve` as the page has it."""

    def __init__(self, guide):
        self.guide = guide

    def __enter__(self):
        command = next(text for text in blocks("console") if "kohort serve" in text)
        words = command.removeprefix("$ kohort ").split()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kohort", *words],
            cwd=self.guide.folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        ready = self.process.stdout.readline()
        if not ready.startswith("kohort ready"):
            self.__exit__()
            pytest.fail("the broker of the page did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(SOON_S)
        self.process.stdout.close()


def test_the_commands_of_the_page_work(guide):
    out = guide.done.stdout
    assert guide.done.stderr == ""
    assert "failed" not in out
    assert "ok       principal  User:alice" in out
    assert out.endswith("1 record to orders\nhello\n")


@pytest.mark.parametrize("make", MAKES)
def test_a_client_of_each_make_does_what_it_may(guide, make):
    (program,) = [text for text in blocks("python") if text.startswith(f"# {make}")]
    guide.run(sys.executable, "-c", guide.here(program))


def test_the_properties_of_java_are_those_of_our_commands(guide):
    ran = guide.shell("kohort topics list --command-config client.properties")
    assert ran.stdout.split()[-3:][0] == "orders"
    assert ran.stderr == ""


def test_every_make_of_the_page_is_tried():
    assert len(blocks("python")) == len(MAKES)


OTHERS = PAGE.read_text(encoding="utf-8").split("\n## Other listeners\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("number", range(3))
def test_the_settings_of_other_listeners_open_them(number, tmp_path, monkeypatch):
    """All but the keys of an authority, which are fetched when a broker starts."""
    authority = Authority()
    authority.write(tmp_path / "ca.pem")
    authority.sign("localhost").write_pem(tmp_path / "broker.pem")
    monkeypatch.chdir(tmp_path)
    text = re.findall(r"```properties\n(.*?)```", OTHERS, re.DOTALL)[number]
    config = BrokerConfig.of(read_properties(text))
    assert not config.ignored
    check_security(config, client_listeners(config), None)
