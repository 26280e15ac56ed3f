# SPDX-License-Identifier: Apache-2.0
"""The broker that a suite of another client talks to. It stands beside the plugins, outside of any
package: such a suite has a package `tests` of its own.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

CERTIFICATES = Path(os.environ["KOHORT_SUITE_CERTIFICATES"])
MODULES = "org.apache.kafka.common.security"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:admin;User:ANONYMOUS",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": str(CERTIFICATES / "server.pem"),
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": str(CERTIFICATES / "ca.crt"),
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
}


def plain(users: Mapping[str, str]) -> dict[str, str]:
    """The setting that gives these users a password for PLAIN."""
    known = " ".join(f'user_{user}="{password}"' for user, password in users.items())
    return {"sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {known};"}


class SuiteBroker:
    """`kohort serve` with the listeners that a suite asks for, and one in plain text for commands.

    `listeners` has host:port by name, and each name is a security protocol. `first` is the address
    of the first one, `address` that of the one for commands.
    """

    def __init__(self, listeners: Mapping[str, str], settings: Mapping[str, str]) -> None:
        whole = {
            **SETTINGS,
            "listeners": ",".join(
                f"{name}://{address}"
                for name, address in {**listeners, "OWN": "127.0.0.1:0"}.items()
            ),
            "listener.security.protocol.map": "OWN:PLAINTEXT",
            **settings,
        }
        flags = [part for name, text in whole.items() for part in ("-X", f"{name}={text}")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kohort", "serve", "--in-memory", *flags],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        if not ready.startswith("kohort ready"):
            self.stop()
            raise RuntimeError(f"the broker of the suite did not start: {ready!r}")
        self.first, *_, self.address = re.findall(r" on (\S+:\d+)", ready)

    def command(self, *arguments: str, given: str = "") -> str:
        """What a command of Kohort prints. Raises RuntimeError with what it complains of."""
        done = subprocess.run(
            [sys.executable, "-m", "kohort", *arguments, "--bootstrap-server", self.address],
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"kohort {' '.join(arguments)}: {done.stderr or done.stdout}")
        return done.stdout

    def add_user(self, user: str, password: str) -> None:
        """Who logs in by SCRAM."""
        mechanisms = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
        self.command("users", "create", user, *mechanisms, given=password + "\n")

    def topics(self) -> list[str]:
        listed = json.loads(self.command("topics", "list", "--format", "json"))
        return [topic["topic"] for topic in listed["topics"]]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
