# SPDX-License-Identifier: Apache-2.0
"""`kohort topics`: create, list, describe, configure, alter and delete topics."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.cluster_commands import AdminCommand, ChangeCommand
from kohort.cli.command import (
    ERROR_FIELDS,
    FAILED,
    OK,
    Commands,
    complain_about,
    complain_of,
    error_fields,
    is_unsure,
    pair,
    topic_name,
    with_doubt,
)
from kohort.cli.consequences import of_topics, which
from kohort.cli.regular_expressions import expression
from kohort.cli.render import Output, name_text, runs
from kohort.cli.resource_configs import ConfigureTopics
from kohort.cli.second_look import changed_topics, recreated
from kohort.errors import ApiError, ErrorCode, UnsupportedVersionError
from kohort.figures import counted
from kohort.terms import uuid_text

if TYPE_CHECKING:
    from kohort.client.admin import (
        AdminClient,
        CreatedTopic,
        Outcomes,
        TopicDescription,
        TopicListing,
    )


_RESULT = ("topic", "result", *ERROR_FIELDS)


def _add_topics(parser: ArgumentParser) -> None:
    parser.add_argument("topics", nargs="+", metavar="NAME", type=topic_name, help="a topic's name")


class CreateTopics(ChangeCommand):
    """`kohort topics create`."""

    help: ClassVar[str] = "create topics"
    dry_run: ClassVar[str] = "let the cluster check it, and create nothing"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort topics create orders --partitions 6",
        "kohort topics create audit --config cleanup.policy=compact",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        _add_topics(parser)
        parser.add_argument(
            "--partitions",
            type=_positive,
            default=-1,
            metavar="N",
            help="number of partitions (default: as the broker is configured)",
        )
        parser.add_argument(
            "--replication-factor",
            type=_positive,
            default=-1,
            metavar="N",
            help="copies of each partition (default: as the broker is configured)",
        )
        parser.add_argument(
            "--config",
            action="append",
            type=pair,
            default=[],
            metavar="NAME=VALUE",
            help="a setting of the topic, such as retention.ms=60000; may be repeated",
        )

    def question(self, _args: Namespace) -> None:
        """None: what is there stays as it is."""

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "Outcomes[str, CreatedTopic]":
        from kohort.client.admin import NewTopic

        configs = dict(args.config)
        wanted = [
            NewTopic(name, args.partitions, args.replication_factor, configs)
            for name in dict.fromkeys(args.topics)
        ]
        if args.dry_run:
            output.doing = f"checking {counted(len(wanted), 'topic')}"
            return await admin.create_topics(wanted, validate_only=True)
        with output.changing(f"creating {counted(len(wanted), 'topic')}"):
            return _with_doubts(await admin.create_topics(wanted), "created")

    def show(self, answer: "Outcomes[str, CreatedTopic]", args: Namespace, output: Output) -> int:
        return _show_results(answer, "created", args, output)


class AlterTopics(ChangeCommand):
    """`kohort topics alter`."""

    help: ClassVar[str] = "give topics more partitions"
    dry_run: ClassVar[str] = "let the cluster check it, and change nothing"
    notes: ClassVar[str] = (
        "What was written stays where it is. Records with a key may go to other partitions from "
        "now on, so what has one key is in order no longer. Partitions are never taken away. For "
        "settings there is `kohort topics config`."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort topics alter orders --partitions 12 --dry-run",
        "kohort topics alter orders payments --partitions 12 --yes",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        _add_topics(parser)
        parser.add_argument(
            "--partitions",
            type=_positive,
            required=True,
            metavar="N",
            help="number of partitions in the end, more than now",
        )
        parser.set_defaults(ids={})  # of the topics that stood above the question

    def question(self, args: Namespace) -> str:
        topics = which(dict.fromkeys(args.topics), "topic")
        return f"Give {topics} {counted(args.partitions, 'partition')}"

    async def consequences(self, admin: "AdminClient", args: Namespace) -> Sequence[str]:
        found = await admin.describe_topics(args.topics)
        args.ids = {name: topic.topic_id for name, topic in found.succeeded.items()}
        return [
            f"topic {name_text(topic)}: {counted(len(one.partitions), 'partition')} now, "
            "keys may go to other partitions afterwards"
            for topic, one in found.succeeded.items()
            if len(one.partitions) < args.partitions
        ]

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "Outcomes[str, Any]":
        from kohort.client.admin import Outcomes

        wanted = dict.fromkeys(args.topics, args.partitions)
        if args.dry_run:
            output.doing = f"checking {len(wanted)} topics"
            return await admin.create_partitions(wanted, validate_only=True)
        others = await changed_topics(admin, args.ids)
        same = {name: count for name, count in wanted.items() if name not in others}
        with output.changing(f"altering {counted(len(same), 'topic')}"):
            altered = dict((await admin.create_partitions(same)).items()) if same else {}
        outcomes = {**altered, **others}
        return _with_doubts(Outcomes({name: outcomes[name] for name in wanted}), "altered")

    def show(self, answer: "Outcomes[str, Any]", args: Namespace, output: Output) -> int:
        return _show_results(answer, "altered", args, output)


class DeleteTopics(ChangeCommand):
    """`kohort topics delete`."""

    help: ClassVar[str] = "delete topics and all their records"
    dry_run: ClassVar[str] = "say which topics exist, and delete nothing"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort topics delete orders --dry-run",
        "kohort topics delete orders payments --yes",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        _add_topics(parser)
        parser.set_defaults(found=None)  # what stood above the question

    def question(self, args: Namespace) -> str:
        names = list(dict.fromkeys(args.topics))
        return f"Delete {which(names, 'topic')} and {'its' if len(names) == 1 else 'their'} records"

    async def consequences(self, admin: "AdminClient", args: Namespace) -> Sequence[str]:
        args.found = await admin.describe_topics(args.topics)
        return await of_topics(admin, dict(args.found.items()))

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "Outcomes[str, Any]":
        names = list(dict.fromkeys(args.topics))
        if args.dry_run:
            output.doing = f"looking at {len(names)} topics"
            return await admin.describe_topics(names)
        with output.changing(f"deleting {counted(len(names), 'topic')}"):
            if args.found is not None:
                return _with_doubts(await _delete_shown(admin, args.found), "deleted")
            return _with_doubts(await admin.delete_topics(names), "deleted")

    def show(self, answer: "Outcomes[str, Any]", args: Namespace, output: Output) -> int:
        return _show_results(answer, "deleted", args, output)


async def _delete_shown(
    admin: "AdminClient", shown: "Outcomes[str, TopicDescription]"
) -> "Outcomes[str, Any]":
    """Delete the topics that were shown, by their ids (KIP-516): never one that got the same name
    since. Brokers without such ids get names, after a last look at what has them.
    """
    from kohort.client.admin import Outcomes

    ids = {
        name: topic.topic_id
        for name, topic in shown.succeeded.items()
        if topic.topic_id is not None
    }
    outcomes: dict[str, Any] = dict(shown.failed)
    try:
        by_id = dict((await admin.delete_topics_by_id(list(ids.values()))).items())
        outcomes |= {name: _of_shown(name, by_id[id_]) for name, id_ in ids.items()}
    except UnsupportedVersionError:
        pass  # nothing was sent
    rest = [name for name in shown if name not in outcomes]
    if rest:
        again = await admin.describe_topics(rest)
        outcomes |= again.failed
        found = again.succeeded
        same = [name for name, topic in found.items() if topic.topic_id == shown[name].topic_id]
        outcomes |= {name: recreated(name) for name in found.keys() - set(same)}
        outcomes |= dict((await admin.delete_topics(same)).items()) if same else {}
    return Outcomes({name: outcomes[name] for name in shown})


def _of_shown(name: str, outcome: ApiError | None) -> ApiError | None:
    is_gone = outcome is not None and outcome.code is ErrorCode.UNKNOWN_TOPIC_ID
    return recreated(name) if is_gone else outcome


def _with_doubts(outcomes: "Outcomes[str, Any]", done: str) -> "Outcomes[str, Any]":
    """The outcomes. The text of an error says so if its change may have been made all the same."""
    from kohort.client.admin import Outcomes

    return Outcomes(
        {
            topic: with_doubt(outcome, done) if isinstance(outcome, ApiError) else outcome
            for topic, outcome in outcomes.items()
        }
    )


def _show_results(
    outcomes: "Outcomes[str, Any]", word: str, args: Namespace, output: Output
) -> int:
    """What became of each topic, or would have. Returns the exit code."""
    errors = outcomes.failed
    done, failed = (f"would be {word}", "would fail") if args.dry_run else (word, "failed")
    results = {
        name: done
        if name not in errors
        else "unknown"
        if is_unsure(errors[name]) and not args.dry_run
        else failed
        for name in outcomes
    }
    if not output.is_table:
        rows = (
            {
                "topic": name,
                "result": result,
                **(error_fields(errors[name]) if name in errors else {}),
            }
            for name, result in results.items()
        )
        output.rows("topics", rows, _RESULT, dry_run=args.dry_run)
    else:
        output.table(("TOPIC", "RESULT"), list(results.items()))
    return complain_of("topic", outcomes)


class ListTopics(AdminCommand):
    """`kohort topics list`."""

    help: ClassVar[str] = "list topics"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort topics list --internal",
        "kohort topics list --matching 'orders-.*'",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--internal", action="store_true", help="also those that brokers keep for themselves"
        )
        parser.add_argument(
            "--matching",
            type=expression,
            metavar="REGEX",
            help="only those whose whole name matches, internal ones too: what a group of KIP-848 "
            "reads that subscribes by this expression (RE2)",
        )

    async def ask(
        self, admin: "AdminClient", args: Namespace, _output: Output
    ) -> "tuple[TopicListing, ...]":
        listings = await admin.list_topics(internal=args.internal or args.matching is not None)
        if args.matching is None:
            return listings
        from kohort import expressions

        return tuple(
            listing for listing in listings if expressions.matches(args.matching, listing.name)
        )

    def show(self, answer: "tuple[TopicListing, ...]", _args: Namespace, output: Output) -> int:
        if not output.is_table:
            rows = (
                {
                    "topic": topic.name,
                    "topic_id": _id(topic.topic_id),
                    "internal": topic.internal,
                    "partitions": topic.partitions,
                    **(error_fields(topic.error) if topic.error else {}),
                }
                for topic in answer
            )
            columns = ("topic", "topic_id", "internal", "partitions", *ERROR_FIELDS)
            output.rows("topics", rows, columns)
        else:
            output.table(
                ("TOPIC", "PARTITIONS", "ID"),
                ((topic.name, topic.partitions, _id(topic.topic_id)) for topic in answer),
                spare=("ID",),
            )
        code = OK
        for topic in answer:
            if topic.error is not None:
                complain_about("topic", topic.name, topic.error)
                code = FAILED
        return code


class DescribeTopics(AdminCommand):
    """`kohort topics describe`."""

    help: ClassVar[str] = "show partitions, their leaders and replicas"
    examples: ClassVar[tuple[str, ...]] = ("kohort topics describe orders --format json",)

    def arguments(self, parser: ArgumentParser) -> None:
        _add_topics(parser)

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "Outcomes[str, TopicDescription]":
        output.doing = f"describing {len(args.topics)} topics"
        return await admin.describe_topics(args.topics)

    def show(
        self, answer: "Outcomes[str, TopicDescription]", _args: Namespace, output: Output
    ) -> int:
        if not output.is_table:
            columns = (
                *("topic", "topic_id", "internal", "partition", "leader", "leader_epoch"),
                *("replicas", "in_sync", "offline", *ERROR_FIELDS),
            )
            errors = [
                {"topic": name, **error_fields(error)} for name, error in answer.failed.items()
            ]
            rows = map(_topic_fields, answer.succeeded.values())
            output.rows("topics", rows, columns, nested="partitions", errors=errors)
        elif answer.succeeded:
            output.table(
                ("TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN-SYNC", "ERROR"),
                (
                    (
                        topic.name,
                        partition.partition,
                        partition.leader,
                        partition.leader_epoch,
                        runs(partition.replicas),
                        runs(partition.in_sync),
                        partition.error.code.name if partition.error else None,
                    )
                    for topic in answer.succeeded.values()
                    for partition in topic.partitions
                ),
                spare=("EPOCH", "IN-SYNC", "REPLICAS"),
            )
        return complain_of("topic", answer)


def _topic_fields(topic: "TopicDescription") -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": _id(topic.topic_id),
        "internal": topic.internal,
        "partitions": [
            {
                "partition": partition.partition,
                "leader": partition.leader,
                "leader_epoch": partition.leader_epoch,
                "replicas": partition.replicas,
                "in_sync": partition.in_sync,
                "offline": partition.offline,
                **(error_fields(partition.error) if partition.error else {}),
            }
            for partition in topic.partitions
        ],
    }


def _id(topic_id: bytes | None) -> str | None:
    return None if topic_id is None else uuid_text(topic_id)


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 10_000):
        raise ArgumentTypeError(f"{text!r} is not a number from 1 to 10000")
    return int(text)


COMMANDS: Commands = {
    "create": CreateTopics(),
    "config": ConfigureTopics(),
    "list": ListTopics(),
    "describe": DescribeTopics(),
    "alter": AlterTopics(),
    "delete": DeleteTopics(),
}
