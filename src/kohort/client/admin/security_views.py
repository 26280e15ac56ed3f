# SPDX-License-Identifier: Apache-2.0
"""Rules of access and SCRAM credentials as the admin client takes and returns them.

Numbers and names are upstream's (KIP-140, KIP-290, KIP-554), and stand in `kohort.security.acls`.
"""

from dataclasses import dataclass, field

from kohort.security.acls import AclOperation, AclPermission, PatternType, ResourceType
from kohort.security.names import SCRAM_SHA_512
from kohort.security.scram import ITERATIONS_DEFAULT


@dataclass(frozen=True, slots=True, order=True)
class AclBinding:
    """A rule: this principal, from this host, may do this or not.

    `principal` is `User:NAME`, and `User:*` is everybody. The name `*` of a literal pattern is
    every resource; that of a cluster is `kafka-cluster`. `host` is an address as text, `*` any.
    """

    resource_type: ResourceType
    resource_name: str
    principal: str
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW
    pattern: PatternType = PatternType.LITERAL
    host: str = "*"


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which rules are meant. Without arguments it means all of them.

    None and ANY match everything. `User:*` matches only rules for `User:*`.
    """

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY
    pattern: PatternType = PatternType.ANY
    host: str | None = None


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a user can log in with. `mechanism` is a text as `SCRAM-SHA-512`."""

    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """A user to be made, or another password for one. The password is never shown.

    `salt` is drawn where it is None. Brokers take 4096 to 16,384 iterations.
    """

    user: str
    password: str = field(repr=False)
    mechanism: str = SCRAM_SHA_512
    iterations: int = ITERATIONS_DEFAULT
    salt: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ScramDeletion:
    """A credential to be taken away from a user."""

    user: str
    mechanism: str = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token that stands for its owner (KIP-48). Principals are texts as `User:alice`.

    With `token_id` as the user and `hmac` in base64 as the password one logs in by SCRAM. The hmac
    is a secret, and is never shown. Times are milliseconds since 1970; nobody can renew the token
    beyond `max_timestamp_ms`. `requester` is None below version 3 (KIP-373), where owners ask for
    themselves. `renewers` may renew it, as its owner may.
    """

    token_id: str
    owner: str
    requester: str | None
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    hmac: bytes = field(repr=False)
    renewers: tuple[str, ...] = ()
