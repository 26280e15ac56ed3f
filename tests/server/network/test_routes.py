# SPDX-License-Identifier: Apache-2.0
"""Where requests go, and how they are handled."""

import pytest
from tests.prove.sweep.requests import Filler
from tests.server.desk import Desk

from kohort.server.network.routes import ROUTES
from kohort.wire.apis import APIS

# Others come in between, however much one of these names. All others are handled in one piece:
# what belongs together is judged or written at once, or an answer of that size is no trouble.
IN_PARTS = {
    "AlterConfigs",
    "ConsumerGroupDescribe",
    "CreatePartitions",
    "CreateTopics",
    "DeleteGroups",
    "DescribeConfigs",
    "DescribeGroups",
    "DescribeLogDirs",
    "DescribeProducers",
    "DescribeTopicPartitions",
    "FindCoordinator",
    "IncrementalAlterConfigs",
    "ListOffsets",
    "Metadata",
    "OffsetForLeaderEpoch",
}
MOST = 50


def test_the_requests_in_one_piece_are_these():
    found = {api.name for api in APIS.values() if ROUTES[api.request].in_parts}
    assert found == IN_PARTS


def requests():
    for api in APIS.values():
        if api.request in ROUTES:
            for way in Filler(api, []).ways():
                if way.path and not way.same and not way.long and len(way.path) == 1:
                    yield pytest.param(api, way, id=f"{api.name}: {way.name}")


@pytest.mark.parametrize(("api", "way"), [*requests()])
def test_a_request_in_one_piece_may_name_a_fifth_of_the_elements(api, way):
    in_parts = api.name in IN_PARTS
    most = MOST if in_parts else MOST // 5
    setting = "request.max.elements" if in_parts else "a fifth of request.max.elements"
    filler = Filler(api, [])
    desk = Desk(request_max_elements=str(MOST))
    desk.another()
    desk.send(filler.request(way._replace(count=most)), api.versions.last)
    assert " elements, expected" not in str(desk.connections[0].error)
    desk.send(filler.request(way._replace(count=2 * most + 1)), api.versions.last, node=1)
    error = str(desk.connections[1].error)
    read = f"elements, expected at most {2 * most}"  # no more of them are decoded
    assert error.endswith((read, f"elements, expected at most {most} ({setting})"))


@pytest.mark.parametrize(
    "api", [api for api in APIS.values() if api.request in ROUTES], ids=lambda api: api.name
)
def test_a_request_that_names_nothing_is_answered_or_ends_its_connection(api):
    """In every version. Whoever gets no answer waits for ever, and so does all behind it."""
    for version in api.versions:
        desk = Desk()
        filler = Filler(api, [])
        (nothing, *_) = filler.ways()
        asked = desk.send(filler.request(nothing), version)
        desk.settle()
        desk.wait(60_000)
        assert asked.answer is not None or desk.connections[0].error, f"{api.name} v{version}"
