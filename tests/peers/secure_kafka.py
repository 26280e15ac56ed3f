# SPDX-License-Identifier: Apache-2.0
"""A real Apache Kafka with listeners of every security protocol, and users for every mechanism."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import pbkdf2_hmac
from pathlib import Path

from tests.certificates import Authority
from tests.peers.kafka import Kafka
from tests.ports import free_ports

from kohort.client.network.address import Address
from kohort.client.network.cluster import Cluster
from kohort.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)

USERS = ("admin", "alice", "bob")
LISTENERS = {
    "SSL": "SSL",
    "MUTUAL": "SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASLSSL": "SASL_SSL",
    "REAUTH": "SASL_PLAINTEXT",
    "ONLY512": "SASL_PLAINTEXT",
}
_SCRAM = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
_MODULES = "org.apache.kafka.common.security"


def password_of(user: str) -> str:
    return f"{user}-secret"


class SecureKafka:
    """`addresses` has host:port by listener; `certificates` what the authority has signed."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority()
        self.stranger = Authority("Another CA")
        self.folder = folder
        ports = free_ports(len(LISTENERS))
        self.addresses = {
            name: f"localhost:{port}" for name, port in zip(LISTENERS, ports, strict=True)
        }
        self.ca = self.authority.write(folder / "ca.pem")
        self.other_ca = self.stranger.write(folder / "other.pem")
        self.alice = self.authority.sign("alice", names=()).write_pem(folder / "alice.pem")
        self.other_alice = self.stranger.sign("alice", names=()).write_pem(
            folder / "other_alice.pem"
        )
        self.kafka = Kafka()
        self.kafka.settings.update(self._settings())
        self.addresses["PLAINTEXT"] = self.kafka.address

    def _settings(self) -> dict[str, object]:
        base = Kafka.properties(self.kafka)
        more = ",".join(f"{name}://{self.addresses[name]}" for name in LISTENERS)
        kinds = ",".join(f"{name}:{kind}" for name, kind in LISTENERS.items())
        usual = self.authority.sign("broker")
        expired = self.authority.sign("broker", valid=timedelta(days=-1))
        elsewhere = self.authority.sign("broker", names=("a.example", "b.example", "10.0.0.1"))
        settings: dict[str, object] = {
            "listeners": f"{base['listeners']},{more}",
            "advertised.listeners": f"{base['advertised.listeners']},{more}",
            "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{kinds}",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "delegation.token.secret.key": "secret-of-tokens",
            "super.users": "User:ANONYMOUS;User:admin;User:bob;User:CN=alice,O=Kohort",
        }
        for name, kind in LISTENERS.items():
            prefix = f"listener.name.{name.lower()}."
            if "SSL" in kind:
                identity = {"EXPIRED": expired, "ELSEWHERE": elsewhere}.get(name, usual)
                file = identity.write_pem(self.folder / f"{name}.pem")
                settings[f"{prefix}ssl.keystore.type"] = "PEM"
                settings[f"{prefix}ssl.keystore.location"] = file
                settings[f"{prefix}ssl.truststore.type"] = "PEM"
                settings[f"{prefix}ssl.truststore.location"] = self.ca
            if name == "MUTUAL":
                settings[f"{prefix}ssl.client.auth"] = "required"
            if "SASL" in kind:
                settings.update(_sasl(name, prefix))
        settings["listener.name.reauth.connections.max.reauth.ms"] = 4000
        return settings

    async def add_users(self) -> None:
        """Credentials for SCRAM, by the listener without security."""
        cluster = Cluster([Address.of(self.kafka.address)], client_id="test")
        wanted = []
        for user in USERS:
            for number, name in _SCRAM.values():
                salt = os.urandom(16)
                salted = pbkdf2_hmac(name, password_of(user).encode(), salt, 4096)
                wanted.append(
                    ScramCredentialUpsertion(
                        name=user,
                        mechanism=number,
                        iterations=4096,
                        salt=salt,
                        salted_password=salted,
                    )
                )
        for upsertion in wanted:  # one user is taken once in a request
            deadline = asyncio.get_running_loop().time() + 30
            node = await cluster.controller(deadline)
            request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion])
            answer = await cluster.ask(node, request, deadline=deadline)
            assert [one.error_code for one in answer.results] == [0]
        await asyncio.sleep(0.5)  # until the broker has it
        await cluster.close()


def _sasl(name: str, prefix: str) -> dict[str, object]:
    users = " ".join(f'user_{user}="{password_of(user)}"' for user in USERS)
    modules = {
        "PLAIN": f"{_MODULES}.plain.PlainLoginModule required {users};",
        "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule required;",
        "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule required;",
        "OAUTHBEARER": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
    }
    offered = ["SCRAM-SHA-512"] if name == "ONLY512" else list(modules)
    return {
        f"{prefix}sasl.enabled.mechanisms": ",".join(offered),
        **{f"{prefix}{one.lower()}.sasl.jaas.config": modules[one] for one in offered},
    }


@contextmanager
def secure_kafka(folder: Path) -> Iterator[SecureKafka]:
    secure = SecureKafka(folder)
    with secure.kafka:
        asyncio.run(secure.add_users())
        yield secure
