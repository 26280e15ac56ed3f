"""`kohort topics`: create, list, describe and delete topics."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.command import OK, AdminCommand, Command, complain_of, error_fields, name
from kohort.cli.render import Output, runs
from kohort.terms import uuid_text

if TYPE_CHECKING:
    from kohort.client.admin import AdminClient, Outcomes, TopicDescription


class CreateTopics(AdminCommand):
    """`kohort topics create`."""

    help: ClassVar[str] = "create topics"

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("topics", nargs="+", metavar="NAME", type=name, help="a topic's name")
        parser.add_argument(
            "--partitions",
            type=_positive,
            default=-1,
            metavar="N",
            help="how many (default: as the broker is configured)",
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
            type=_pair,
            default=[],
            metavar="NAME=VALUE",
            help="a setting of the topic, such as retention.ms=60000; may be repeated",
        )

    async def run(self, admin: "AdminClient", args: Namespace, output: Output) -> int:
        from kohort.client.admin import NewTopic  # noqa: PLC0415  (start-up time)

        output.doing = f"creating {len(args.topics)} topics"
        configs = dict(args.config)
        outcomes = await admin.create_topics(
            NewTopic(name, args.partitions, args.replication_factor, configs)
            for name in dict.fromkeys(args.topics)
        )
        return _show_results(outcomes, "created", output)


class DeleteTopics(AdminCommand):
    """`kohort topics delete`."""

    help: ClassVar[str] = "delete topics and all their records"

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("topics", nargs="+", metavar="NAME", type=name, help="a topic's name")

    async def run(self, admin: "AdminClient", args: Namespace, output: Output) -> int:
        output.doing = f"deleting {len(args.topics)} topics"
        outcomes = await admin.delete_topics(dict.fromkeys(args.topics))
        return _show_results(outcomes, "deleted", output)


def _show_results(outcomes: "Outcomes[str, Any]", done: str, output: Output) -> int:
    errors = outcomes.failed
    if output.as_json:
        topics = [
            {
                "topic": name,
                "result": "failed" if name in errors else done,
                **(error_fields(errors[name]) if name in errors else {}),
            }
            for name in outcomes
        ]
        output.json({"topics": topics})
    else:
        output.table(
            ("TOPIC", "RESULT"), ((name, "failed" if name in errors else done) for name in outcomes)
        )
    return complain_of("topic", outcomes)


class ListTopics(AdminCommand):
    """`kohort topics list`."""

    help: ClassVar[str] = "list topics"

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--internal", action="store_true", help="also those that brokers keep for themselves"
        )

    async def run(self, admin: "AdminClient", args: Namespace, output: Output) -> int:
        topics = await admin.list_topics(internal=args.internal)
        if output.as_json:
            output.json(
                {
                    "topics": [
                        {
                            "topic": one.name,
                            "topic_id": _id(one.topic_id),
                            "internal": one.internal,
                            "partitions": one.partitions,
                        }
                        for one in topics
                    ]
                }
            )
        else:
            output.table(
                ("TOPIC", "PARTITIONS", "ID"),
                ((one.name, one.partitions, _id(one.topic_id)) for one in topics),
            )
        return OK


class DescribeTopics(AdminCommand):
    """`kohort topics describe`."""

    help: ClassVar[str] = "show partitions, their leaders and replicas"

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("topics", nargs="+", metavar="NAME", type=name, help="a topic's name")

    async def run(self, admin: "AdminClient", args: Namespace, output: Output) -> int:
        output.doing = f"describing {len(args.topics)} topics"
        described = await admin.describe_topics(args.topics)
        if output.as_json:
            output.json(
                {
                    "topics": [_topic_fields(topic) for topic in described.succeeded.values()],
                    "errors": [
                        {"topic": name, **error_fields(error)}
                        for name, error in described.failed.items()
                    ],
                }
            )
        else:
            output.table(
                ("TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN-SYNC", "ERROR"),
                (
                    (
                        topic.name,
                        one.partition,
                        one.leader,
                        one.leader_epoch,
                        runs(one.replicas),
                        runs(one.in_sync),
                        one.error.code.name if one.error else None,
                    )
                    for topic in described.succeeded.values()
                    for one in topic.partitions
                ),
            )
        return complain_of("topic", described)


def _topic_fields(topic: "TopicDescription") -> dict[str, Any]:
    return {
        "topic": topic.name,
        "topic_id": _id(topic.topic_id),
        "internal": topic.internal,
        "partitions": [
            {
                "partition": one.partition,
                "leader": one.leader,
                "leader_epoch": one.leader_epoch,
                "replicas": one.replicas,
                "in_sync": one.in_sync,
                "offline": one.offline,
                **(error_fields(one.error) if one.error else {}),
            }
            for one in topic.partitions
        ],
    }


def _id(topic_id: bytes | None) -> str | None:
    return None if topic_id is None else uuid_text(topic_id)


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 10_000):
        raise ArgumentTypeError(f"{text!r} is not a number from 1 to 10000")
    return int(text)


def _pair(text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name.strip():
        raise ArgumentTypeError(f"{text!r} is not a setting, expected NAME=VALUE")
    return name.strip(), value


COMMANDS: dict[str, Command] = {
    "create": CreateTopics(),
    "list": ListTopics(),
    "describe": DescribeTopics(),
    "delete": DeleteTopics(),
}
