# SPDX-License-Identifier: Apache-2.0
"""What the admin client returns about all groups, and `Outcomes`. Other calls have views of their
own (`group_views`, `topic_views` and more): making such a class takes most of a millisecond.

Names are upstream's. What a broker did not say (it is too old, or its protocol has no such thing)
is None, never an invented value.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from kohort.errors import ApiError
from kohort.terms import GroupState, GroupType, TopicPartition

Key = TypeVar("Key")
Value = TypeVar("Value")


# The names of GroupState and GroupType, as upstream spells them, beside the enums themselves.
StateName: TypeAlias = (
    GroupState
    | Literal[
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "Dead",
        "Empty",
        "Assigning",
        "Reconciling",
        "NotReady",
    ]
)
TypeName: TypeAlias = GroupType | Literal["classic", "consumer", "share", "streams"]

OFFSETS_TOPIC = "__consumer_offsets"


class Coverage:
    """A result that knows what it should have covered."""

    __slots__ = ()

    @property
    def missing(self) -> Mapping[Any, ApiError]:
        """What should be here and is not, each with the reason."""
        raise NotImplementedError

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


class Outcomes(Coverage, Generic[Key, Value]):
    """The outcome for each thing that was asked for, in that order: a value, or an ApiError.

    A failure hides no other outcome, and cannot be overlooked: `outcomes[key]` gives the value or
    raises the error of that key (KeyError for one that was not asked). `items()` gives values and
    errors without raising, `succeeded` and `failed` one kind each, and `all()` everything, or
    raises the first error.
    """

    __slots__ = ("_failed", "_outcomes")

    def __init__(self, outcomes: Mapping[Key, Value | ApiError]) -> None:
        self._outcomes = dict(outcomes)
        # Most often empty, and asked for once for each key: to look for it then takes the square.
        self._failed = {
            key: error for key, error in self._outcomes.items() if isinstance(error, ApiError)
        }

    def __getitem__(self, key: Key) -> Value:
        outcome = self._outcomes[key]
        if isinstance(outcome, ApiError):
            raise outcome
        return outcome

    def __iter__(self) -> Iterator[Key]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __contains__(self, key: object) -> bool:
        return key in self._outcomes

    def __repr__(self) -> str:
        return f"Outcomes({self._outcomes!r})"

    def items(self) -> Iterator[tuple[Key, Value | ApiError]]:
        """Each key with its value or its error."""
        return iter(self._outcomes.items())

    @property
    def succeeded(self) -> dict[Key, Value]:
        """The values of those that succeeded."""
        if not self._failed:
            return cast("dict[Key, Value]", self._outcomes.copy())
        return {
            key: value for key, value in self._outcomes.items() if not isinstance(value, ApiError)
        }

    @property
    def failed(self) -> dict[Key, ApiError]:
        """The errors of those that failed."""
        return self._failed.copy()

    @property
    def missing(self) -> dict[Any, ApiError]:
        """`failed`, and what failed inside of values: such as the offset of one partition of a
        group, under (group id, partition).
        """
        return {
            (key, inner) if value is not error else key: error
            for key, value in self._outcomes.items()
            for inner, error in _errors_in(value).items()
        }

    def all(self) -> dict[Key, Value]:
        """Everything, if nothing failed. Raises the first error otherwise."""
        for error in self._failed.values():
            raise error
        return self.succeeded


def _errors_in(value: object) -> Mapping[Any, ApiError]:
    """What is missing in an outcome: the whole of it, or parts."""
    if isinstance(value, ApiError):
        return {None: value}
    if isinstance(value, Coverage):
        return value.missing
    if isinstance(value, Mapping):
        return {key: each for key, each in value.items() if isinstance(each, ApiError)}
    return {}


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group as listed by ListGroups (KIP-40, KIP-518, KIP-848).

    `state` and `type` are None when the broker is too old to tell (ListGroups below v4, below v5),
    and the broker's own text when this package does not know it.
    """

    group_id: str
    protocol_type: str
    state: GroupState | str | None
    type: GroupType | str | None


ListedPart: TypeAlias = int | TopicPartition | str
"""A part of a listing: a broker by its id, a coordinator by its partition of __consumer_offsets, or
this topic by its name, for all coordinators."""


@dataclass(frozen=True, slots=True)
class Listings(Coverage):
    """All groups, sorted by id, and what is missing among them, with the reason.

    `errors` has the id of each broker that could not be asked, and the partition of
    __consumer_offsets of each coordinator that could not, such as one that nobody is at the moment:
    their groups are missing from `groups`. `unverified` says why it is not known whether all
    coordinators have answered; None where that is known. `missing` has both.
    """

    groups: tuple[GroupListing, ...]
    errors: Mapping[int | TopicPartition, ApiError]
    unverified: ApiError | None = None

    @property
    def missing(self) -> dict[ListedPart, ApiError]:
        """`errors`, and `unverified` under the name of the topic that it is about."""
        found: dict[ListedPart, ApiError] = dict(self.errors.items())
        if self.unverified is not None:
            found[OFFSETS_TOPIC] = self.unverified
        return found

    def __iter__(self) -> Iterator[GroupListing]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)
