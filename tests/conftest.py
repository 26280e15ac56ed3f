"""Options of the whole test suite."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write the transcripts of tests/scenarios anew; then read the diff",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Which tests run in one process, one after the other, where there are several processes: those
    that share a Spark session, and otherwise those of one file, which may share a broker.
    """
    with_session = {item.path for item in items if "spark" in getattr(item, "fixturenames", ())}
    for item in items:
        group = "spark" if item.path in with_session else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
