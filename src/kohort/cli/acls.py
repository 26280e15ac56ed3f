# SPDX-License-Identifier: Apache-2.0
"""`kohort acls`: list, add and remove rules of access, with the arguments of kafka-acls.sh."""

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

from kohort.cli.cluster_commands import AdminCommand, ChangeCommand
from kohort.cli.command import (
    ERROR_FIELDS,
    FAILED,
    OK,
    Commands,
    chosen_name,
    complain,
    error_fields,
    name,
    reason,
    with_doubt,
    words,
)
from kohort.cli.render import Output
from kohort.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from kohort.client.admin import AclBinding, AclFilter, AdminClient

RESOURCES = {  # the option of each kind of resource, and upstream's name of the kind
    "topic": "TOPIC",
    "group": "GROUP",
    "transactional_id": "TRANSACTIONAL_ID",
    "delegation_token": "DELEGATION_TOKEN",
    "user_principal": "USER",
}
CLUSTER_NAME = "kafka-cluster"  # the only one that there is
OPERATIONS = (
    *("All", "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction"),
    *("DescribeConfigs", "AlterConfigs", "IdempotentWrite", "CreateTokens", "DescribeTokens"),
    "TwoPhaseCommit",
)
POSSIBLE = {  # beside All; a rule about something else can be made and never counts
    "topic": (
        *("Read", "Write", "Create", "Delete", "Alter", "Describe"),
        *("DescribeConfigs", "AlterConfigs"),
    ),
    "group": ("Read", "Delete", "Describe", "DescribeConfigs", "AlterConfigs"),
    "cluster": (
        *("Create", "Alter", "Describe", "ClusterAction", "DescribeConfigs", "AlterConfigs"),
        "IdempotentWrite",
    ),
    "transactional_id": ("Write", "Describe", "TwoPhaseCommit"),
    "delegation_token": ("Describe",),
    "user_principal": ("CreateTokens", "DescribeTokens"),
}
CONSUMER = {"topic": ("Read", "Describe"), "group": ("Read",)}
PRODUCER = {"topic": ("Write", "Describe", "Create"), "transactional_id": ("Write", "Describe")}
_FIELDS = [
    "resource_type",
    "resource_name",
    "pattern",
    "principal",
    "host",
    "permission",
    "operation",
]
_HEADERS = ("RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "PERMISSION", "OPERATION")
_SPARE = ("HOST", "PATTERN")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class ListAcls(AdminCommand):
    """`kohort acls list`."""

    help: ClassVar[str] = "list rules of access"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort acls list",
        "kohort acls list --principal User:alice",
        "kohort acls list --topic orders --resource-pattern-type match",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        _add_resources(
            parser,
            "any",
            ("any", "match", "literal", "prefixed"),
            "match: all that count for these names; any (default): rules with exactly these names",
        )
        parser.add_argument(
            "--principal",
            action="append",
            type=_principal,
            default=[],
            metavar="User:NAME",
            help="only rules for this principal; may be repeated",
        )

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "tuple[AclBinding, ...]":
        from kohort.client.admin import AclFilter

        output.doing = "looking for rules"
        resources: Any = list(_resources(args)) or [{}]
        found: set[AclBinding] = set()
        for resource, principal in product(resources, args.principal or [None]):
            found.update(await admin.describe_acls(AclFilter(**resource, principal=principal)))
        return tuple(sorted(found))

    def show(self, answer: "tuple[AclBinding, ...]", _args: Namespace, output: Output) -> int:
        if not output.is_table:
            output.rows("acls", map(_fields, answer), _FIELDS)
        elif answer:
            output.table(_HEADERS, map(_row, answer), spare=_SPARE)
        else:
            output.line("no rules")
        return OK


class _Change(ChangeCommand):
    """Rules by the arguments of kafka-acls.sh: every principal may do everything with each."""

    word: ClassVar[str]

    def arguments(self, parser: ArgumentParser) -> None:
        _add_resources(
            parser,
            "literal",
            ("literal", "prefixed"),
            "prefixed: all names that begin so; literal (default): these names, * is every one",
        )
        for permission, what in (("allow", "may"), ("deny", "may not")):
            parser.add_argument(
                f"--{permission}-principal",
                action="append",
                type=_principal,
                default=[],
                metavar="User:NAME",
                help=f"who {what}; User:* is everybody; may be repeated",
            )
            parser.add_argument(
                f"--{permission}-host",
                action="append",
                type=name,
                default=[],
                metavar="ADDRESS",
                help="from where (default: any); may be repeated",
            )
        parser.add_argument(
            "--operation",
            action="extend",
            type=words("operation", OPERATIONS),
            default=[],
            metavar="OPERATION",
            help=f"what (default: All): {', '.join(OPERATIONS)}; may be repeated",
        )
        parser.add_argument(
            "--consumer",
            action="store_true",
            help="what a consumer needs: Read and Describe of --topic, Read of --group",
        )
        parser.add_argument(
            "--producer",
            action="store_true",
            help="what a producer needs: Write, Describe and Create of --topic, Write and Describe "
            "of --transactional-id",
        )

    def mistake(self, args: Namespace) -> str | None:
        command = f"acls {self.word}"
        if not any(_resources_named(args)):
            options = ", ".join(f"--{option.replace('_', '-')}" for option in RESOURCES)
            return f"{command}: no resource is given, expected {options} or --cluster"
        for permission in ("allow", "deny"):
            if getattr(args, f"{permission}_host") and not getattr(args, f"{permission}_principal"):
                return f"{command}: --{permission}-host needs --{permission}-principal"
        if args.consumer or args.producer:
            return self._mistake_of_role(command, args)
        return None

    def _mistake_of_role(self, command: str, args: Namespace) -> str | None:
        if args.operation:
            return f"{command}: --operation is not for --consumer and --producer"
        if not args.topic:
            return f"{command}: --consumer and --producer need --topic"
        if args.consumer and not args.group:
            return f"{command}: --consumer needs --group"
        if not (args.allow_principal or args.deny_principal):
            return f"{command}: --consumer and --producer need --allow-principal"
        return None


class AddAcls(_Change):
    """`kohort acls add`."""

    word: ClassVar[str] = "add"
    help: ClassVar[str] = "add rules: who may do what, and who may not"
    dry_run: ClassVar[str] = "say which of the rules are new, and add none"
    examples: ClassVar[tuple[str, ...]] = (
        "kohort acls add --allow-principal User:alice --operation Read --group billing",
        "kohort acls add --allow-principal User:alice --consumer --topic orders --group billing",
        "kohort acls add --deny-principal User:bob --topic ord --resource-pattern-type prefixed",
    )

    def question(self, _args: Namespace) -> None:
        """None: a rule takes nothing away that another call could not give back."""

    def mistake(self, args: Namespace) -> str | None:
        wrong = super().mistake(args)
        if wrong is None and not (args.allow_principal or args.deny_principal):
            return "acls add: nobody is given, expected --allow-principal or --deny-principal"
        return wrong or self._never_counts(args)

    def _never_counts(self, args: Namespace) -> str | None:
        """Why a rule of these arguments would be of no use, as kafka-acls.sh says it of operations.
        A broker takes any.
        """
        for option, _ in _resources_named(args):
            for operation in args.operation:
                if operation not in ("All", *POSSIBLE[option]):
                    kind = option.replace("_", " ")
                    return (
                        f"acls add: nobody can {operation} a {kind}, expected All or one of "
                        f"{', '.join(POSSIBLE[option])}"
                    )
        for host in (*args.allow_host, *args.deny_host):
            if not _is_address(host):
                return (
                    f"acls add: host {host!r} is no address, and names and ranges never match, "
                    "expected one as 10.0.0.1, or *"
                )
        return None

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "Mapping[AclBinding, ApiError | None]":
        rules = list(dict.fromkeys(_rules(args)))
        if args.dry_run:
            output.doing = "looking for rules"
            args.there = {rule for rule in rules if await admin.describe_acls(_filter_of(rule))}
            return dict.fromkeys(rules)
        with output.changing(f"adding {len(rules)} rules"):
            return dict((await admin.create_acls(rules)).items())

    def show(
        self, answer: "Mapping[AclBinding, ApiError | None]", args: Namespace, output: Output
    ) -> int:
        if args.dry_run:
            _show_tried(
                {acl: "is there" if acl in args.there else "would be added" for acl in answer},
                output,
            )
            return OK
        failed = {
            acl: with_doubt(error, "added") for acl, error in answer.items() if error is not None
        }
        if not output.is_table:
            rows = (
                {**_fields(acl), **(error_fields(failed[acl]) if acl in failed else {})}
                for acl in answer
            )
            output.rows("acls", rows, (*_FIELDS, *ERROR_FIELDS))
        elif added := [acl for acl in answer if acl not in failed]:
            output.table(_HEADERS, map(_row, added), spare=_SPARE)
        for acl, error in failed.items():
            complain(f"rule {' '.join(_row(acl))}: {reason(error)}")
        return FAILED if failed else OK


class RemoveAcls(_Change):
    """`kohort acls remove`."""

    word: ClassVar[str] = "remove"
    help: ClassVar[str] = "take rules away: those that `acls add` makes with the same arguments"
    dry_run: ClassVar[str] = "say which rules would be removed, and remove none"
    notes: ClassVar[str] = "Without a principal all rules of these resources are removed."
    examples: ClassVar[tuple[str, ...]] = (
        "kohort acls remove --allow-principal User:alice --operation Read --group billing",
        "kohort acls remove --topic orders --yes",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        super().arguments(parser)
        parser.set_defaults(
            found=None, absent=[]
        )  # what stood above the question, and what did not

    def mistake(self, args: Namespace) -> str | None:
        wrong = super().mistake(args)
        if wrong is None and args.operation and not (args.allow_principal or args.deny_principal):
            return "acls remove: --operation needs --allow-principal or --deny-principal"
        return wrong

    def question(self, _args: Namespace) -> str:
        return "Remove these rules"

    async def consequences(self, admin: "AdminClient", args: Namespace) -> Sequence[str]:
        args.found = await self._look(admin, args)
        return ["  ".join(_row(acl)) for acl in args.found]

    async def _look(self, admin: "AdminClient", args: Namespace) -> "list[AclBinding]":
        """The rules that the arguments find; the filters that find none are kept as absent."""
        found: set[AclBinding] = set()
        args.absent = []
        for wanted in dict.fromkeys(_filters(args)):
            rules = await admin.describe_acls(wanted)
            found.update(rules)
            args.absent += [] if rules else [wanted]
        return sorted(found)

    async def ask(
        self, admin: "AdminClient", args: Namespace, output: Output
    ) -> "tuple[tuple[AclBinding, ...], list[ApiError]]":
        if args.dry_run:
            output.doing = "looking for rules"
            return tuple(await self._look(admin, args)), []
        asked = _filters(args) if args.found is None else map(_filter_of, args.found)
        wanted = list(dict.fromkeys(asked))
        if not wanted:
            return (), []
        with output.changing("removing rules"):
            gone = await admin.delete_acls(wanted)
        args.absent += [one for one, acls in gone.succeeded.items() if not acls]
        found = {acl for acls in gone.succeeded.values() for acl in acls}
        return tuple(sorted(found)), list(gone.failed.values())

    def show(
        self,
        answer: "tuple[tuple[AclBinding, ...], list[ApiError]]",
        args: Namespace,
        output: Output,
    ) -> int:
        gone, failed = answer
        errors = [with_doubt(error, "removed") for error in failed]
        errors += map(_absent, args.absent)
        if args.dry_run:
            _show_tried(dict.fromkeys(gone, "would be removed"), output, errors)
        elif not output.is_table:
            output.rows(
                *("acls", map(_fields, gone), _FIELDS),
                errors=list(map(error_fields, errors)),
                dry_run=False,
            )
        elif gone:
            output.table(_HEADERS, map(_row, gone), spare=_SPARE)
        for text in dict.fromkeys(reason(with_doubt(error, "removed")) for error in failed):
            complain(f"rules are not removed: {text}")
        for one in args.absent:
            complain(reason(_absent(one)))
        return FAILED if errors else OK


def _absent(wanted: "AclFilter") -> ApiError:
    """The error of a rule, or of rules about something, of which there is none."""
    parts = (wanted.principal, wanted.host, wanted.permission, wanted.operation)
    words = [part if isinstance(part, str) else part.name for part in parts if part]
    place = f"{wanted.resource_type.name} {wanted.resource_name} ({wanted.pattern.name})"
    whose = " ".join(words) if wanted.principal else "any"
    return ApiError(ErrorCode.RESOURCE_NOT_FOUND, f"there is no rule of {place}: {whose}")


def _show_tried(
    results: "Mapping[AclBinding, str]", output: Output, errors: Sequence[ApiError] = ()
) -> None:
    """What would become of each rule."""
    if not output.is_table:
        rows = ({**_fields(acl), "result": result} for acl, result in results.items())
        shown = list(map(error_fields, errors))
        output.rows("acls", rows, (*_FIELDS, "result"), errors=shown, dry_run=True)
    elif results:
        table = [(*_row(acl), result) for acl, result in results.items()]
        output.table((*_HEADERS, "RESULT"), table, spare=_SPARE)


def _add_resources(parser: ArgumentParser, usual: str, patterns: Sequence[str], text: str) -> None:
    for option in RESOURCES:
        parser.add_argument(
            f"--{option.replace('_', '-')}",
            dest=option,
            action="append",
            type=chosen_name,
            default=[],
            metavar="NAME",
            help=f"about this {option.replace('_', ' ')}; may be repeated",
        )
    parser.add_argument("--cluster", action="store_true", help="about the cluster as a whole")
    parser.add_argument("--resource-pattern-type", choices=patterns, default=usual, help=text)


def _resources_named(args: Namespace) -> Iterator[tuple[str, str]]:
    """The option and the name of each resource."""
    for option in RESOURCES:
        for resource in getattr(args, option):
            yield option, resource
    if args.cluster:
        yield "cluster", CLUSTER_NAME


def _resources(args: Namespace) -> Iterator[dict[str, Any]]:
    """The same, as fields of a rule and of a filter."""
    for option, resource in _resources_named(args):
        yield _resource(args, option, resource)


def _resource(args: Namespace, option: str, resource: str) -> dict[str, Any]:
    from kohort.client.admin import PatternType, ResourceType

    pattern = PatternType[args.resource_pattern_type.upper()]
    is_cluster = option == "cluster" and pattern is PatternType.PREFIXED  # it has one name
    return {
        "resource_type": ResourceType[RESOURCES.get(option, "CLUSTER")],
        "resource_name": resource,
        "pattern": PatternType.LITERAL if is_cluster else pattern,
    }


def _rules(args: Namespace) -> "Iterator[AclBinding]":
    from kohort.client.admin import AclBinding, AclOperation, AclPermission

    for option, resource in _resources_named(args):
        for permission in ("allow", "deny"):
            principals = getattr(args, f"{permission}_principal")
            hosts = getattr(args, f"{permission}_host") or ["*"]
            for principal, host, operation in product(principals, hosts, _operations(args, option)):
                yield AclBinding(
                    principal=principal,
                    host=host,
                    operation=AclOperation[_CAPITAL.sub("_", operation).upper()],
                    permission=AclPermission[permission.upper()],
                    **_resource(args, option, resource),
                )


def _operations(args: Namespace, option: str) -> Sequence[str]:
    """The operations that the arguments name for this kind of resource."""
    if not (args.consumer or args.producer):
        return args.operation or ["All"]
    of_consumer = CONSUMER.get(option, ()) if args.consumer else ()
    return (*of_consumer, *(PRODUCER.get(option, ()) if args.producer else ()))


def _filters(args: Namespace) -> "Iterator[AclFilter]":
    from kohort.client.admin import AclFilter

    if not (args.allow_principal or args.deny_principal):
        for place in _resources(args):
            yield AclFilter(**place)
    yield from map(_filter_of, _rules(args))


def _filter_of(rule: "AclBinding") -> "AclFilter":
    """What finds this rule alone."""
    from kohort.client.admin import AclFilter

    return AclFilter(
        rule.resource_type,
        rule.resource_name,
        rule.principal,
        rule.operation,
        rule.permission,
        rule.pattern,
        rule.host,
    )


def _is_address(host: str) -> bool:
    from ipaddress import ip_address

    if host == "*":
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _principal(text: str) -> str:
    kind, found, user = text.partition(":")
    if not found or not kind or not user:
        raise ArgumentTypeError(f"{text!r} is not a principal, expected User:NAME")
    return name(text)


def _row(acl: "AclBinding") -> tuple[str, ...]:
    return (
        acl.resource_type.name,
        acl.resource_name,
        acl.pattern.name,
        acl.principal,
        acl.host,
        acl.permission.name,
        acl.operation.name,
    )


def _fields(acl: "AclBinding") -> dict[str, str]:
    return {
        "resource_type": acl.resource_type.name,
        "resource_name": acl.resource_name,
        "pattern": acl.pattern.name,
        "principal": acl.principal,
        "host": acl.host,
        "permission": acl.permission.name,
        "operation": acl.operation.name,
    }


COMMANDS: Commands = {
    "list": ListAcls(),
    "add": AddAcls(),
    "remove": RemoveAcls(),
}
