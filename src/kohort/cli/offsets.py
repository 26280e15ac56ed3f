# SPDX-License-Identifier: Apache-2.0
"""`kohort offsets`: where groups of any cluster go on reading."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from kohort.cli.arguments import duration, moment
from kohort.cli.cluster_commands import AdminCommand, ChangeCommand, ClusterCommand
from kohort.cli.command import (
    ERROR_FIELDS,
    FAILED,
    OK,
    Commands,
    chosen_name,
    complain,
    complain_of,
    complain_of_missing,
    error_fields,
    is_unsure,
    name,
    reason,
    with_doubt,
)
from kohort.cli.lags import offset_of
from kohort.cli.offset_plans import ChangeOffsets, Wanted, add_topics, place_text, places_of
from kohort.cli.render import CSV, Output, columns, name_text
from kohort.cli.second_look import committed_since
from kohort.errors import ApiError
from kohort.figures import counted
from kohort.user_files import DATA_BYTES_MAX, file_bytes, stdin_bytes

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient, GroupOffsets, Listings, OffsetReset, Outcomes
    from kohort.terms import TopicPartition

STDIN = "-"
INT64_MAX = 2**63 - 1
_PLACES = 5  # of those that have no offset, in a line
_COMMITTED = ("TOPIC", "PARTITION", "COMMITTED")
_DELETED = ("group_id", "topic", "partition", "committed_offset", "result", *ERROR_FIELDS)


class _Export(NamedTuple):
    """`listings` is None unless all groups were asked for."""

    listings: "Listings | None"
    offsets: "Outcomes[str, GroupOffsets]"


class ResetOffsets(ChangeOffsets):
    """`kohort offsets reset`."""

    help: ClassVar[str] = "let groups without members go on elsewhere"
    notes: ClassVar[str] = (
        "The new offset is always one that the log has: below its first record it is that one, "
        "beyond its end the end. A line on stderr says where that was so."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort offsets reset billing --to-earliest --dry-run",
        "kohort offsets reset billing --to-datetime 2026-11-21T07:00Z --topic orders",
        "kohort offsets reset billing --shift-by -100 --topic orders:0-2 --yes",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("groups", nargs="+", metavar="GROUP", type=name, help="a group id")
        ways = parser.add_mutually_exclusive_group(required=True)
        ways.add_argument("--to-earliest", action="store_true", help="the first record")
        ways.add_argument("--to-latest", action="store_true", help="behind the last record")
        ways.add_argument(
            "--to-current",
            action="store_true",
            help="what is committed; behind the last record where nothing is",
        )
        ways.add_argument("--to-offset", type=_offset, metavar="N", help="this offset")
        ways.add_argument(
            "--shift-by", type=_shift, metavar="N", help="N records further, or back below 0"
        )
        ways.add_argument(
            "--to-datetime",
            type=moment,
            metavar="TIME",
            help="the first record at or after a time, as 2026-11-21T07:00Z: in ISO 8601, in UTC "
            "where it names no zone, or milliseconds since 1970",
        )
        ways.add_argument(
            "--by-duration",
            type=duration,
            metavar="DURATION",
            help="the first record of the last time, as 90m or 7d",
        )
        add_topics(parser, "only there (default: wherever the group has an offset)")

    def wanted(self, args: Namespace) -> Wanted:
        return dict.fromkeys(args.groups, _reset(args))


def _reset(args: Namespace) -> "OffsetReset":
    from kohort.client.admin import OffsetReset

    if args.to_offset is not None:
        return OffsetReset.to_offset(args.to_offset)
    if args.shift_by is not None:
        return OffsetReset.shift_by(args.shift_by)
    if args.to_datetime is not None:
        return OffsetReset.to_time(args.to_datetime)
    if args.by_duration is not None:
        return OffsetReset.by_duration(timedelta(milliseconds=args.by_duration))
    if args.to_current:
        return OffsetReset.current()
    return OffsetReset.earliest() if args.to_earliest else OffsetReset.latest()


class ImportOffsets(ChangeOffsets):
    """`kohort offsets import`."""

    help: ClassVar[str] = "set the offsets of a file, as `offsets export` writes it"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort offsets import billing.csv --dry-run",
        "kohort offsets import one-group.csv --group billing",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file",
            metavar="FILE",
            help="lines of GROUP,TOPIC,PARTITION,OFFSET, or of TOPIC,PARTITION,OFFSET with --group:"
            " both forms of kafka-consumer-groups; - for stdin",
        )
        parser.add_argument(
            "--group",
            action="append",
            type=name,
            metavar="GROUP",
            help="only this group; may be repeated",
        )
        parser.set_defaults(topic=None)

    def wanted(self, args: Namespace) -> Wanted:
        from kohort.client.admin import OffsetReset
        from kohort.client.admin.offsets_csv import read_offsets

        text = _text(args.file)
        try:
            found = read_offsets(text)
        except ValueError as error:
            raise ValueError(f"offsets import: {args.file}: {error}") from None
        if None in found:
            if not args.group:
                raise ValueError(f"offsets import: {args.file} names no group, expected --group")
            return dict.fromkeys(args.group, OffsetReset.from_offsets(found[None]))
        groups = {
            group: OffsetReset.from_offsets(offsets)
            for group, offsets in found.items()
            if group is not None
        }
        for group in args.group or ():
            if group not in groups:
                raise ValueError(f"offsets import: {args.file} has no line of group {group}")
        return {group: groups[group] for group in args.group or groups}


def _text(file: str) -> str:
    """The text of a file, or of stdin, with its line ends as they are: a name may have some. Raises
    ValueError.
    """
    try:
        is_stdin = file == STDIN
        data = stdin_bytes(DATA_BYTES_MAX) if is_stdin else file_bytes(file, DATA_BYTES_MAX)
        return data.decode()  # `read_offsets` takes the mark of the byte order away, once
    except OSError as error:
        raise ValueError(f"offsets import: cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"offsets import: cannot read {file}: byte {error.start} is not UTF-8"
        ) from None


class CloneOffsets(ChangeOffsets):
    """`kohort offsets clone`."""

    help: ClassVar[str] = "let a group go on where another one is"
    examples: ClassVar[tuple[str, ...]] = ("kohort offsets clone billing billing-2",)

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", metavar="SOURCE", type=name, help="the group to follow")
        parser.add_argument("group", metavar="GROUP", type=chosen_name, help="the group to set")
        add_topics(parser, "only there (default: wherever SOURCE has an offset)")

    def wanted(self, args: Namespace) -> Wanted:
        from kohort.client.admin import OffsetReset

        if args.source == args.group:
            raise ValueError(f"offsets clone: {args.group!r} is given twice, expected two groups")
        return {args.group: OffsetReset.clone(args.source)}

    def nothing(self, args: Namespace) -> str:
        return f"is not changed: group {name_text(args.source)} has no committed offset to follow"


class ExportOffsets(AdminCommand):
    """`kohort offsets export`."""

    help: ClassVar[str] = "write the committed offsets of groups, for `offsets import`"
    notes: ClassVar[str] = (
        "Lines of GROUP,TOPIC,PARTITION,OFFSET go to stdout, which kafka-consumer-groups reads too."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort offsets export billing > billing.csv",
        "kohort offsets export --all > all.csv",
    )

    def configure(self, parser: ArgumentParser) -> None:
        ClusterCommand.configure(self, parser)
        parser.set_defaults(format=CSV)

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("groups", nargs="*", metavar="GROUP", type=name, help="a group id")
        parser.add_argument("--all", action="store_true", help="every group that has offsets")

    def mistake(self, args: Namespace) -> str | None:
        if bool(args.groups) == args.all:
            return "offsets export: expected group ids, or --all without any"
        return None

    async def ask(self, admin: "AdminClient", args: Namespace, output: Output) -> _Export:
        listings, ids = None, list(dict.fromkeys(args.groups))
        if args.all:
            listings = await admin.list_groups()
            ids = [listing.group_id for listing in listings]
        output.doing = f"fetching the committed offsets of {counted(len(ids), 'group')}"
        return _Export(listings, await admin.list_group_offsets(ids))

    def show(self, answer: _Export, args: Namespace, output: Output) -> int:
        from kohort.client.admin import CommittedOffset
        from kohort.client.admin.offsets_csv import offsets_csv

        code = OK if answer.listings is None else complain_of_missing(answer.listings)
        code = max(code, complain_of("offsets of group", answer.offsets))
        found_by_group = answer.offsets.succeeded
        lines = offsets_csv(
            {
                group_id: {at: one for at, one in found.items() if isinstance(one, CommittedOffset)}
                for group_id, found in found_by_group.items()
            }
        )
        output.csv(lines)
        for group_id, found in found_by_group.items():
            for partition, error in found.items():
                if isinstance(error, ApiError):
                    complain(
                        f"group {name_text(group_id)}, {place_text(partition)}: {reason(error)}"
                    )
                    code = FAILED
            if not found and not args.all:
                complain(f"group {name_text(group_id)} has no committed offset")
                code = FAILED
        return code


class DeleteOffsets(ChangeCommand):
    """`kohort offsets delete`."""

    help: ClassVar[str] = "forget committed offsets of topics that no member of a group reads"
    dry_run: ClassVar[str] = "show the offsets, and delete none"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort offsets delete billing --topic orders --dry-run",
        "kohort offsets delete billing --topic orders:0-2,5 --yes",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("group", metavar="GROUP", type=name, help="a group id")
        add_topics(parser, "offsets of this")
        parser.set_defaults(committed=None)  # what stood above the question

    def mistake(self, args: Namespace) -> str | None:
        if places_of(args) is None:
            return "offsets delete: nothing says which offsets, expected --topic"
        return None

    def question(self, args: Namespace) -> str:
        return f"Delete these offsets of group {name_text(args.group)}"

    async def consequences(self, admin: "AdminClient", args: Namespace) -> Sequence[str]:
        args.committed = found = await _committed(admin, args)
        rows = [(*partition, offset_of(offset)) for partition, offset in found.items()]
        return columns(_COMMITTED, rows) if rows else ()

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "tuple[GroupOffsets, Outcomes[TopicPartition, None]]":
        from kohort.client.admin import Outcomes

        output.doing = f"looking at group {args.group}"
        found, left = args.committed, {}
        if found is None:
            found = await _committed(admin, args)
        else:
            left = (await committed_since(admin, {args.group: found})).get(args.group, {})
        places = [place for place in found if place not in left]
        if args.dry_run or not places:
            return found, Outcomes(left)
        with output.changing(f"deleting offsets of group {args.group}"):
            deleted = await admin.delete_group_offsets(args.group, places)
        return found, Outcomes({**dict(deleted.items()), **left})

    def show(
        self,
        answer: "tuple[GroupOffsets, Outcomes[TopicPartition, None]]",
        args: Namespace,
        output: Output,
    ) -> int:
        found, outcomes = answer
        results = dict.fromkeys(found, "would be deleted") if args.dry_run else {}
        for partition, error in outcomes.items():
            unsure = "unknown" if is_unsure(error) else "failed"
            results[partition] = unsure if error is not None else "deleted"
        errors = outcomes.failed
        if not output.is_table:
            rows = (
                {
                    "group_id": args.group,
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "committed_offset": offset_of(found[partition]),
                    "result": result,
                    **_error_of(errors, partition),
                }
                for partition, result in results.items()
            )
            output.rows("offsets", rows, _DELETED, dry_run=args.dry_run)
        elif results:
            output.table(
                (*_COMMITTED, "RESULT"),
                [(*at, offset_of(found[at]), result) for at, result in results.items()],
            )
        for partition, error in errors.items():
            why = reason(with_doubt(error, "deleted"))
            complain(f"group {name_text(args.group)}, {place_text(partition)}: {why}")
        if not found:
            places = list(map(_place, places_of(args) or ()))
            more = f" and {len(places) - _PLACES:,} more" if len(places) > _PLACES else ""
            named = ", ".join(places[:_PLACES]) + more
            complain(f"group {name_text(args.group)} has no committed offset in {named}")
        return FAILED if errors or not found else OK


async def _committed(admin: "AdminClient", args: Namespace) -> "GroupOffsets":
    """The offsets that the arguments name, of those that there are. Raises ApiError."""
    places = set(places_of(args) or ())
    found = (await admin.list_group_offsets(args.group))[args.group]
    return {
        partition: offset
        for partition, offset in found.items()
        if partition.topic in places or tuple(partition) in places
    }


def _place(given: "str | tuple[str, int]") -> str:
    return given if isinstance(given, str) else f"{given[0]}:{given[1]}"


def _error_of(errors: "Mapping[TopicPartition, ApiError]", key: "TopicPartition") -> dict[str, str]:
    error = errors.get(key)
    return {} if error is None else error_fields(with_doubt(error, "deleted"))


def _offset(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:20]) <= INT64_MAX):
        raise ArgumentTypeError(f"{text!r} is no offset, expected a number from 0 to {INT64_MAX}")
    return int(text)


def _shift(text: str) -> int:
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and int(digits[:20]) <= INT64_MAX):
        raise ArgumentTypeError(f"{text!r} is no number of records, expected such as 100 or -100")
    return int(text)


COMMANDS: Commands = {
    "reset": ResetOffsets(),
    "export": ExportOffsets(),
    "import": ImportOffsets(),
    "clone": CloneOffsets(),
    "delete": DeleteOffsets(),
}
