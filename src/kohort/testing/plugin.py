"""The plugin for pytest: a broker for the session, and a topic and a group for each test.

It is loaded wherever Kohort is installed, so it imports nothing of the broker until a fixture is
used: of Kohort only `kohort.testing.names`, which needs nothing itself.
"""

import sys
from collections.abc import Generator, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from kohort.testing.names import fresh_name

if TYPE_CHECKING:
    from kohort.testing.broker import Broker

GROUPS: "pytest.StashKey[list[tuple[Broker, str]]]" = pytest.StashKey()
"""The groups that a test has been given, for the report of its failure."""


class AsInstalled:
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


sys.meta_path.insert(0, AsInstalled)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "kohort_topic(partitions=1, *, configs={}): what the fixture kohort_topic creates",
    )


@pytest.fixture(scope="session")
def kohort_options() -> dict[str, Any]:
    """The arguments of `kohort.testing.Broker` for `kohort_broker`. Define it anew in a conftest.py
    to change them: `{"settings": {"num.partitions": 3}, "clock": "manual"}`.
    """
    return {}


@pytest.fixture(scope="session")
def kohort_broker(kohort_options: dict[str, Any]) -> "Iterator[Broker]":
    """A broker that runs for the whole session, one in each process of pytest-xdist."""
    from kohort.testing.broker import Broker  # noqa: PLC0415  (only where it is used)

    with Broker(**kohort_options) as broker:
        yield broker


@pytest.fixture
def kohort_topic(kohort_broker: "Broker", request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a topic of this test's own, with one partition or as the marker `kohort_topic`
    says. It is deleted afterwards.
    """
    _start_if_stopped(kohort_broker)
    marker = request.node.get_closest_marker("kohort_topic")
    arguments = () if marker is None else marker.args
    options = {} if marker is None else marker.kwargs
    if len(arguments) > 1:
        raise pytest.UsageError(
            f"the marker kohort_topic has {len(arguments)} positional arguments,"
            " expected at most 1, partitions"
        )
    name = kohort_broker.create_topic(fresh_name(request.node.name), *arguments, **options)
    yield name
    kohort_broker.faults.clear()
    if kohort_broker.is_running and name in kohort_broker.topics:
        kohort_broker.delete_topic(name)


@pytest.fixture
def kohort_group(kohort_broker: "Broker", request: pytest.FixtureRequest) -> Iterator[str]:
    """The id of a group that nobody else uses. It is deleted afterwards, with members that are
    still there. When the test fails, the report says what the group looked like.
    """
    _start_if_stopped(kohort_broker)
    name = fresh_name(request.node.name)
    request.node.stash.setdefault(GROUPS, []).append((kohort_broker, name))
    yield name
    kohort_broker.faults.clear()
    if kohort_broker.is_running:
        kohort_broker.groups[name].delete()


def _start_if_stopped(broker: "Broker") -> None:
    """A test before has stopped it, or closed it; this one gets a running broker all the same."""
    if not broker.is_running:
        broker.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the picture of each group to the report of a failure, while the group is still there."""
    report = yield
    if report.when == "call" and report.failed:
        for broker, name in item.stash.get(GROUPS, []):
            if broker.is_running:
                faults = "".join(f"\nfault: {fault}" for fault in broker.faults)
                report.sections.append(("Kohort", f"{broker.groups[name]}{faults}"))
    return report
