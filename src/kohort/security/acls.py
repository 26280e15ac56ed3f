# SPDX-License-Identifier: Apache-2.0
"""The parts of a rule of access (ACL), by upstream's numbers (KIP-140, KIP-290).

A number that is newer than this version is UNKNOWN.
"""

from kohort.terms import ProtocolNumber


class ResourceType(ProtocolNumber):
    """What a rule is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(ProtocolNumber):
    """How a rule names it. ANY and MATCH are for filters: MATCH finds each rule that counts for a
    name, be it by a prefix or for all.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(ProtocolNumber):
    """What a rule allows or denies."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(ProtocolNumber):
    """A denial counts before anything that is allowed."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


_NOT_ASKED = -(2**31)  # what brokers answer where nobody has asked


def operations_in(bits: int) -> frozenset[AclOperation] | None:
    """The operations that a number names, a bit for each (KIP-430); None where none were asked for.
    Those that are newer than this version are UNKNOWN.
    """
    if bits == _NOT_ASKED:
        return None
    return frozenset(AclOperation(bit) for bit in range(1, 32) if bits >> bit & 1)
