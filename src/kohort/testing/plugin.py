# SPDX-License-Identifier: Apache-2.0
"""The plugin for pytest: a broker for the session, and a topic and a group for each test.

It is loaded wherever Kohort is installed, so it imports nothing of the broker until a fixture is
used: of Kohort only `kohort.testing.names`, which needs nothing itself.
"""

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from inspect import signature
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from kohort.testing.names import fresh_name

if TYPE_CHECKING:
    from kohort.testing.broker import Broker

__tracebackhide__ = True
BROKER: "pytest.StashKey[Broker | None]" = pytest.StashKey()
"""The broker of the session, once a test has used it."""
BEGUN: "pytest.StashKey[list[tuple[Broker, dict[int, int]]]]" = pytest.StashKey()
"""How long the logs of groups were when a test began, for the report of its failure."""
Made = TypeVar("Made")
GROUPS_MAX = 10  # in one report


class InstalledModuleFinder:
    """Finds Kohort's modules before pytest does.

    Of a package that brings a plugin, pytest rewrites the asserts of every module: the first
    fixture would wait seconds for that, in each process and wherever nothing can be cached. There
    is no assert in them whose values a test wants to see.
    """

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith("kohort.") else None


sys.meta_path.insert(0, InstalledModuleFinder)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "kohort_topic(partitions=1, *, configs={}, replication_factor=1):"
        " what the fixture kohort_topic creates",
    )


@pytest.fixture(scope="session")
def kohort_options() -> dict[str, Any]:
    """The arguments of `kohort.testing.Broker` for `kohort_broker`. Define it anew in a conftest.py
    to change them: `{"settings": {"num.partitions": 3}, "clock": "manual"}`.
    """
    return {}


@pytest.fixture(scope="session")
def kohort_broker(
    kohort_options: dict[str, Any], request: pytest.FixtureRequest
) -> "Iterator[Broker]":
    """A broker that runs for the whole session, one in each process of pytest-xdist. After each
    test it is as before: it runs with all its nodes, without faults, and its clock was not moved.
    """
    broker = _new_broker(kohort_options)
    request.session.stash[BROKER] = broker
    try:
        yield broker
    finally:
        request.session.stash[BROKER] = None
        broker.close()


def _new_broker(options: dict[str, Any]) -> "Broker":
    from kohort.testing.arguments import check_mapping, check_names  # noqa: PLC0415  (only then)
    from kohort.testing.broker import Broker  # noqa: PLC0415

    def start() -> "Broker":
        check_mapping("kohort_options", options)
        check_names("kohort.testing.Broker, in kohort_options,", options, _parameters(Broker))
        return Broker(**options).start()

    return _or_fail(start)


def _or_fail(make: Callable[[], Made]) -> Made:
    """What is made; a mistake of the test is one line of its report."""
    from kohort.errors import KohortError  # noqa: PLC0415  (only where it is used)

    try:
        return make()
    except KohortError as error:
        text = str(error)
    return pytest.fail(text, pytrace=False)


def _parameters(function: Any) -> list[str]:
    """The names of the arguments that it has, but that of the object itself."""
    names = list(signature(function).parameters)
    return [name for name in names if name not in ("self", "name")]


@pytest.fixture
def kohort_topic(kohort_broker: "Broker", request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a topic of this test's own, with one partition or as the marker `kohort_topic`
    says. It is deleted afterwards.
    """
    name = _or_fail(lambda: _new_topic(kohort_broker, request.node))
    yield name
    if kohort_broker.is_running and name in kohort_broker.topics:
        kohort_broker.delete_topic(name)


def _new_topic(broker: "Broker", node: pytest.Item) -> str:
    from kohort.errors import KohortError  # noqa: PLC0415  (only where it is used)
    from kohort.testing.arguments import check_names  # noqa: PLC0415

    marker = node.get_closest_marker("kohort_topic")
    arguments = () if marker is None else marker.args
    options = {} if marker is None else marker.kwargs
    if len(arguments) > 1:
        raise KohortError(
            f"the marker kohort_topic has {len(arguments)} positional arguments,"
            " expected at most 1, partitions"
        )
    check_names("the marker kohort_topic", options, _parameters(broker.create_topic))
    if arguments and "partitions" in options:
        raise KohortError("the marker kohort_topic names partitions twice")
    return broker.create_topic(fresh_name(node.name), *arguments, **options)


@pytest.fixture
def kohort_group(kohort_broker: "Broker", request: pytest.FixtureRequest) -> Iterator[str]:
    """The id of a group that nobody else uses. It is deleted afterwards, with members that are
    still there. When the test fails, the report says what the group looked like.
    """
    group = kohort_broker.groups[fresh_name(request.node.name)]  # asked for: the report has it
    yield group.id
    if kohort_broker.is_running:
        group.delete()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What earlier tests have asked for is none of this one's, and a broker that an earlier test
    has damaged for longer than its own teardown is tried again.
    """
    for broker in _brokers():
        broker.groups.asked_for.clear()
    broker_of_session = _broker_of(item)
    if broker_of_session is not None and not broker_of_session.is_running:
        broker_of_session.recover()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Note how long the logs of groups are: what is behind that is of this test."""
    item.stash[BEGUN] = [(broker, _mark(broker)) for broker in _running()]
    return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """What a test has done to the broker of the session ends before its fixtures do. They end also
    where the broker does not recover: that is an error of this test, and of no other.
    """
    broker = _broker_of(item)
    try:
        if broker is not None:
            broker.recover()
    finally:
        result = yield
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the picture of each group to the report of a failure, while the group is still there."""
    report = yield
    if report.when == "call" and report.failed:
        marks: list[tuple[Broker, dict[int, int]]] = item.stash.get(BEGUN, [])
        begun = dict(marks)
        for broker in _running():
            report.sections += _pictures(broker, begun.get(broker, {}))
    return report


def _broker_of(item: pytest.Item) -> "Broker | None":
    """The broker of the session, where this test uses it and an earlier one has started it, or its
    own fixtures have.
    """
    uses_it = "kohort_broker" in getattr(item, "fixturenames", ())
    return item.session.stash.get(BROKER, None) if uses_it else None


def _brokers() -> "list[Broker]":
    """The brokers of this process that were started and not closed, if there are any."""
    module = sys.modules.get("kohort.testing.broker")
    return [] if module is None else list(module.running)


def _running() -> "list[Broker]":
    """Those that serve now."""
    return [broker for broker in _brokers() if broker.is_running]


def _mark(broker: "Broker") -> dict[int, int]:
    from kohort.errors import KohortError  # noqa: PLC0415  (only where it is used)

    try:
        ends: dict[int, int] = broker.command("group_log_ends")
    except KohortError:  # it cannot be asked, as in a process that was forked: the test will see
        return {}
    return ends


def _pictures(broker: "Broker", begun: dict[int, int]) -> Iterator[tuple[str, str]]:
    """What the groups look like that a test has named, or has written something of."""
    try:
        groups = dict.fromkeys([*broker.groups.asked_for, *broker.ask("groups_since", begun)])
    except Exception as error:  # noqa: BLE001  (a test may patch anything; its failure counts)
        yield "Kohort", f"{broker!r} cannot be asked: {error}"
        return
    faults = "".join(f"\nfault: {fault}" for fault in broker.faults)
    shown = "\n".join(str(broker.groups[name]) for name in list(groups)[:GROUPS_MAX])
    more = len(groups) - GROUPS_MAX
    if shown or faults:
        yield "Kohort", f"{shown}{f'{chr(10)}and {more} more groups' if more > 0 else ''}{faults}"
