# SPDX-License-Identifier: Apache-2.0
"""Facts about rules of access, and about what clients got under them. See `facts.py`."""

from typing import NamedTuple


class Rule(NamedTuple):
    """A rule, in the codes of the protocol."""

    kind: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


class Demand(NamedTuple):
    """An operation with a thing that a client needs a right for, in the codes of the protocol."""

    operation: int
    kind: int
    name: str


class RulesAsked(NamedTuple):
    """Somebody is about to ask that rules be made, or deleted: `there` says what shall be."""

    rules: tuple[Rule, ...]
    there: bool
    at: int


class RulesDone(NamedTuple):
    """It is acknowledged. Each rule has one actor who changes it, one request after the other."""

    rules: tuple[Rule, ...]
    there: bool
    sent: int
    at: int


class RulesLost(NamedTuple):
    """No answer came, or an error. The change may still be carried out."""

    rules: tuple[Rule, ...]
    there: bool
    at: int


class AccessGiven(NamedTuple):
    """An answer gave a client something that it needs one of these rights for."""

    principal: str
    any_of: tuple[Demand, ...]
    asked: str
    sent: int
    at: int


class AccessRefused(NamedTuple):
    """An answer refused a client something, or hid it: it had not all of these rights."""

    principal: str
    all_of: tuple[Demand, ...]
    asked: str
    sent: int
    at: int


class EffectRefused(NamedTuple):
    """A change was refused. It would have left this text."""

    text: str


class EffectSeen(NamedTuple):
    """Somebody has read a text that a change leaves."""

    text: str


class PatternAssigned(NamedTuple):
    """A member that subscribes to an expression was given a topic that it had not before."""

    principal: str
    topic_id: bytes
    sent: int
    at: int


AccessFact = (
    RulesAsked
    | RulesDone
    | RulesLost
    | AccessGiven
    | AccessRefused
    | EffectRefused
    | EffectSeen
    | PatternAssigned
)
