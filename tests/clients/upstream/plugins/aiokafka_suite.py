# SPDX-License-Identifier: Apache-2.0
"""A plug-in for aiokafka's own tests: the container that they start is Kohort.

Their fixtures run as they are, and speak to a client of Docker. This one starts `kohort serve` in
place of an image, and translates the tools of Kafka that are run in a container.
"""

import re
import shlex
import sys
from types import ModuleType, SimpleNamespace

import pytest
from suite_broker import SuiteBroker, plain

KERBEROS = "Kohort has no Kerberos"


class Container:
    """What stands for a container with Apache Kafka: it has its ports, and its tools."""

    def __init__(self, environment):
        host = environment["ADVERTISED_HOST"]
        listeners = {
            "PLAINTEXT": f"{host}:{environment['ADVERTISED_PORT']}",
            "SSL": f"{host}:{environment['ADVERTISED_SSL_PORT']}",
            "SASL_PLAINTEXT": f"{host}:{environment['ADVERTISED_SASL_PLAINTEXT_PORT']}",
            "SASL_SSL": f"{host}:{environment['ADVERTISED_SASL_SSL_PORT']}",
        }
        users = plain({"admin": "admin", "test": "test", "test2": "test2"})
        self.broker = SuiteBroker(
            listeners,
            {
                **users,
                "ssl.client.auth": "required",
                "num.partitions": str(environment["NUM_PARTITIONS"]),
            },
        )

    def exec_run(self, command, **_):
        """A tool's exit code and what it prints."""
        tool, *arguments = shlex.split(command)
        try:
            return 0, self.run(tool.rpartition("/")[2], arguments).encode()
        except RuntimeError as error:
            return 1, str(error).encode()

    def run(self, tool, arguments):
        if tool == "kafka-configs.sh":
            user = arguments[arguments.index("--entity-name") + 1]
            password = re.search(r"SCRAM-SHA-256=\[password=(.*?)\]", " ".join(arguments))[1]
            return self.broker.add_user(user, password) or ""
        assert tool == "kafka-acls.sh", tool
        (verb,) = {"--add", "--remove", "--list"} & set(arguments)
        end = arguments.index(verb)
        agreed = ["--yes"] if verb == "--remove" else []
        return self.broker.command("acls", verb[2:], *agreed, *arguments[end + 1 :])

    def stop(self):
        self.broker.stop()


def _run(*, environment, **_):
    return Container(environment)


docker = ModuleType("docker")
containers = SimpleNamespace(run=_run)
docker.from_env = lambda: SimpleNamespace(containers=containers, close=lambda: None)
docker.models = SimpleNamespace(containers=SimpleNamespace(Container=Container))
sys.modules["docker"] = docker


class NoKerberos:
    def __init__(self, _container):
        pass

    def create_keytab(self):
        pass

    def kinit(self, _principal):
        pytest.skip(KERBEROS)

    def kdestroy(self):
        pass


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems():
    conftest = next(module for name, module in sys.modules.items() if name == "tests.conftest")
    conftest.KerberosUtils = NoKerberos
