# SPDX-License-Identifier: Apache-2.0
"""What the rules of a run are about: users, topics and groups that nobody else has."""

from kohort.sim.process import HOST, PORT, SECURE_PORT
from kohort.sim.secure_client import password_of

NEVER = "dave"  # may be in groups, and is allowed no topic
USERS = ("alice", "bob", "carol", NEVER)
TOPICS = ("ruled-a", "ruled-ab", "ruled-b")  # one partition each, from the begin on
ABSENT = "ruled-none"
EXPRESSION = "ruled-.*"
COMMITTING = "guests"  # a group without members
BY_NAME, BY_EXPRESSION = "guests-names", "guests-pattern"
GROUPS = (COMMITTING, BY_NAME, BY_EXPRESSION)


def principal_of(user: str) -> str:
    return f"User:{user}"


def secure_settings() -> dict[str, str]:
    """Of a broker on which these users can log in, beside the listener of everybody else."""
    users = " ".join(f'user_{user}="{password_of(user)}"' for user in USERS)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    return {
        "listeners": f"PLAINTEXT://{HOST}:{PORT},SECURE://{HOST}:{SECURE_PORT}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT",
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": f"{module} {users};",
    }
