# SPDX-License-Identifier: Apache-2.0
"""Groups out of a file, and the reasons of the cluster against deleting each of them.

A file is as old as the log that it was made from. So each group is looked at again: it must still
be empty, and must not have committed since.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kohort.cli.command import NAME_BYTES, WrongCallError, reason
from kohort.cli.describe import DESCRIBABLE
from kohort.cli.documents import DoubledNameError, read_json
from kohort.errors import ApiError, ErrorCode
from kohort.figures import counted
from kohort.terms import WITHOUT_MEMBERS
from kohort.user_files import DATA_BYTES_MAX, file_bytes, stdin_bytes

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient, GroupListing

PartitionKey = tuple[str, int]
STDIN = "-"
_CSV = re.compile(r"\s*group_id,")
_TABLE = re.compile(r"\s*(GROUP|GROUP_ID) +[A-Z_]+( +[A-Z_]+)*\s*(\n|$)")  # its headers
_LISTS = ("rows", "groups")  # where an object keeps its groups


class CandidatesError(WrongCallError):
    """The file does not say which groups are meant; the text says what is wrong with it."""


class Candidate(NamedTuple):
    """A group to delete. `offsets` are its committed offsets as the file has them, or None;
    `against` is the file's own reason against it.
    """

    group_id: str
    offsets: Mapping[PartitionKey, int] | None = None
    against: str | None = None


class SkippedGroup(NamedTuple):
    """Why a group is not deleted. No failure: nobody asked for it, or it is gone."""

    result: str
    why: str
    is_failure: bool


def read_candidates(file: str) -> list[Candidate]:
    """The groups of a file, each once. The file has rows of `kohort pipeline show deletable
    --format json`, or a group id in each line. Raises CandidatesError.
    """
    try:
        is_stdin = file == STDIN
        data = stdin_bytes(DATA_BYTES_MAX) if is_stdin else file_bytes(file, DATA_BYTES_MAX)
        text = data.decode("utf-8-sig")  # editors of Windows begin a text with a mark
    except OSError as error:
        raise CandidatesError(f"--from: cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CandidatesError(
            f"line {line} of {_shown(file)} is not text in UTF-8: byte {error.start}"
        ) from None
    if not text.strip():
        raise CandidatesError(f"{_shown(file)} is empty, expected groups to delete")
    if text.lstrip()[:1] in ("[", "{"):
        thing, found = "row", _rows(file, text)
    elif _TABLE.match(text) or _CSV.match(text):
        what = "a printed table" if _TABLE.match(text) else "CSV"
        raise CandidatesError(f"{_shown(file)} looks like {what}, use --format json")
    else:
        thing, found = "line", _lines(text)
    return _each_once(file, thing, found)


def _each_once(file: str, thing: str, found: Mapping[int, Candidate]) -> list[Candidate]:
    """The groups by the numbers of their rows or lines. Raises CandidatesError for a group that is
    told twice and not alike: one of both may be the reason to keep it.
    """
    first: dict[str, int] = {}
    for number, candidate in found.items():
        where = f"{thing} {number} of {_shown(file)}"
        try:
            length = len(candidate.group_id.encode())
        except UnicodeEncodeError:
            shown = json.dumps(candidate.group_id)
            raise CandidatesError(f"{where} is {shown}, expected text in UTF-8") from None
        if length > NAME_BYTES:
            raise CandidatesError(
                f"{where} has {length:,} bytes, expected a group id of {NAME_BYTES:,} at most"
            )
        before = first.setdefault(candidate.group_id, number)
        if found[before] != candidate:
            raise CandidatesError(
                f"{where} has group {candidate.group_id} otherwise than {thing} {before}, expected "
                "each group once"
            )
    return [found[number] for number in first.values()]


def _shown(file: str) -> str:
    return "stdin" if file == STDIN else file


def _lines(text: str) -> dict[int, Candidate]:
    """Only a line feed ends a group id: `splitlines` would make two groups of one with U+2028."""
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return {number: Candidate(line) for number, line in enumerate(lines, 1) if line.strip()}


def _rows(file: str, text: str) -> dict[int, Candidate]:
    try:
        rows = read_json(text)
    except DoubledNameError as error:
        raise CandidatesError(f"{_shown(file)} {error}") from None
    except (ValueError, RecursionError) as error:
        rows = _json_lines(file, text)
        if rows is None:
            raise CandidatesError(f"{_shown(file)} begins as JSON, but is none: {error}") from None
    if isinstance(rows, dict):
        alone = [rows] if "group_id" in rows else None  # the only line of JSON lines
        rows = next((rows[name] for name in _LISTS if name in rows), alone)
    if not isinstance(rows, list):
        raise CandidatesError(
            f"{_shown(file)} has no list of groups, expected rows with a group_id"
        )
    return {number: _candidate(file, number, row) for number, row in enumerate(rows, 1)}


def _json_lines(file: str, text: str) -> list[Any] | None:
    """The document of each line; None where one is none. Raises CandidatesError."""
    rows: list[Any] = []
    for number, line in enumerate(text.split("\n"), 1):
        try:
            rows += [read_json(line)] if line.strip() else []
        except DoubledNameError as error:
            raise CandidatesError(f"line {number} of {_shown(file)} {error}") from None
        except (ValueError, RecursionError):
            return None
    return rows


def _candidate(file: str, number: int, row: Any) -> Candidate:
    if isinstance(row, str):
        return Candidate(row)
    group_id = row.get("group_id") if isinstance(row, dict) else None
    offsets = row.get("offsets") if isinstance(row, dict) else None
    try:
        known = None if offsets is None else dict(map(_offset, offsets))
    except (TypeError, KeyError):
        group_id = None
    deletable = row.get("deletable", True) if isinstance(row, dict) else None
    if not isinstance(group_id, str) or not isinstance(deletable, bool | None):
        shown = json.dumps(row, ensure_ascii=False)[:80]
        raise CandidatesError(
            f"row {number} of {_shown(file)} is {shown}, expected a group_id and offsets"
        )
    against = None if deletable else row.get("reason") or "the file says no"
    return Candidate(group_id, known, against)


def _offset(row: Mapping[str, Any]) -> tuple[PartitionKey, int]:
    return (row["topic"], row["topic_partition"]), row["committed_offset"]


async def reasons_to_skip(
    admin: "AdminClient", candidates: Sequence[Candidate]
) -> dict[str, SkippedGroup | None]:
    """The reason not to delete each group now, None where there is none."""
    asked = [candidate.group_id for candidate in candidates if candidate.against is None]
    described = dict((await admin.describe_groups(asked)).items())
    others = await of_other_types(admin, described)
    found = [group_id for group_id in asked if not isinstance(described[group_id], ApiError)]
    offsets = dict((await admin.list_group_offsets(dict.fromkeys(found))).items())
    return {
        candidate.group_id: (
            SkippedGroup("kept", candidate.against, is_failure=False)
            if candidate.against is not None
            else _unseen(others[candidate.group_id])
            if candidate.group_id in others
            else _against(candidate, described[candidate.group_id], offsets.get(candidate.group_id))
        )
        for candidate in candidates
    }


async def of_other_types(
    admin: "AdminClient", described: Mapping[str, Any]
) -> "dict[str, GroupListing | ApiError]":
    """The groups that describing does not find, and that there are: of types that are listed only.

    They are deleted like all others, so nobody may be told that they are not there. Where groups
    are missing in the list, the error says why it is not known whether this is one of them.
    """
    missing = {
        group_id
        for group_id, outcome in described.items()
        if isinstance(outcome, ApiError) and outcome.code == ErrorCode.GROUP_ID_NOT_FOUND
    }
    if not missing:
        return {}
    listings = await admin.list_groups()
    found: dict[str, GroupListing | ApiError] = {
        listing.group_id: listing
        for listing in listings
        if listing.group_id in missing and listing.type not in DESCRIBABLE
    }
    for error in listings.errors.values():
        text = f"whether it is a group of another type is not known: {reason(error)}"
        unknown = ApiError(error.code, text)
        return {**dict.fromkeys(sorted(missing), unknown), **found}
    return found


def _unseen(listing: "GroupListing | ApiError") -> SkippedGroup:
    if isinstance(listing, ApiError):
        return SkippedGroup("failed", listing.message, is_failure=True)
    why = f"it is a {listing.type} group, whose offsets are not looked at; give its name to delete"
    return SkippedGroup("kept", f"{why} it", is_failure=True)


def _against(candidate: Candidate, described: Any, offsets: Any) -> SkippedGroup | None:
    if isinstance(described, ApiError):
        if described.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return SkippedGroup("gone", "it is not there any more", is_failure=False)
        return SkippedGroup("failed", reason(described), is_failure=True)
    if described.state not in WITHOUT_MEMBERS:
        members = counted(len(described.members), "member")
        why = f"it is {described.state} with {members}, expected Empty"
        return SkippedGroup("kept", why, is_failure=True)
    if isinstance(offsets, ApiError):
        return SkippedGroup("failed", f"its committed offsets: {reason(offsets)}", is_failure=True)
    moved = candidate.offsets is not None and _moved(candidate.offsets, offsets)
    return SkippedGroup("kept", moved, is_failure=True) if moved else None


def _moved(known: Mapping[PartitionKey, int], now: Mapping[Any, Any]) -> str | None:
    """What was committed since. An offset that is gone has expired, or its topic was deleted; that
    is no sign of life.
    """
    for place, found in now.items():
        name = f"{place[0]}:{place[1]}"
        if isinstance(found, ApiError):
            return f"the committed offset of {name}: {reason(found)}"
        before = known.get(tuple(place))
        if found is not None and found.offset != before:
            was = "none" if before is None else before
            return f"it has committed since: {name} is at {found.offset}, was at {was}"
    return None
