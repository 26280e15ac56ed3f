# SPDX-License-Identifier: Apache-2.0
"""`kohort doctor`: finds out why a client and a cluster do not come together."""

from argparse import ArgumentParser, Namespace
from typing import ClassVar

from kohort.cli.cluster_commands import CLIENT_ID, ClusterCommand, connection_or_none
from kohort.cli.command import FAILED, OK, USAGE, complain, name, print_result, topic_name
from kohort.cli.connection import Connection
from kohort.cli.render import Output


class Doctor(ClusterCommand):
    """`kohort doctor`."""

    help: ClassVar[str] = "look for what is wrong between this machine and a cluster"
    notes: ClassVar[str] = (
        "Names, TCP, TLS, SASL, versions, the addresses that brokers tell their clients, and what "
        "may be done, in this order. Nothing is changed. Clocks are not compared: no broker tells "
        "its own."
    )
    examples: ClassVar[tuple[str, ...]] = (
        "kohort doctor --bootstrap-server broker.example:9093 --command-config client.properties",
        "kohort doctor --profile prod --group billing --topic orders",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--group",
            action="append",
            type=name,
            default=[],
            metavar="GROUP",
            help="what may be done with this group; may be repeated",
        )
        parser.add_argument(
            "--topic",
            action="append",
            type=topic_name,
            default=[],
            metavar="TOPIC",
            help="what may be done with this topic; may be repeated",
        )
        parser.add_argument(
            "--format",
            choices=("table", "json"),
            default="table",
            help="table for people (default), json for programs",
        )

    def main(self, args: Namespace) -> int:
        connection = connection_or_none(args)
        if connection is None:
            return USAGE
        try:
            return print_result(lambda output: _examine(connection, args, output), args.format)
        except ValueError as error:
            complain(f"doctor: {error}")
            return USAGE


def _examine(connection: Connection, args: Namespace, output: Output) -> int:
    import asyncio

    from kohort.cli import diagnosis
    from kohort.cli.progress import Progress
    from kohort.client.settings import addresses_of

    async def run() -> list[diagnosis.Finding]:
        async with Progress(output):
            return await diagnosis.diagnose(
                addresses_of(connection.server.text),
                connection.security,
                client_id=CLIENT_ID,
                groups=args.group,
                topics=args.topic,
                timeout_s=args.timeout,
            )

    findings = asyncio.run(run())
    failed = any(finding.result == diagnosis.FAILED for finding in findings)
    if not output.is_table:
        output.json({"ok": not failed, "checks": [finding._asdict() for finding in findings]})
    else:
        for finding in findings:
            output.line(f"{finding.result:7}  {finding.check:9}  {finding.text}")
    return FAILED if failed else OK


COMMAND = Doctor()
