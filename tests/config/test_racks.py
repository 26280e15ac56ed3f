# SPDX-License-Identifier: Apache-2.0
"""What `broker.rack` says about several nodes."""

import pytest

from kohort.config import ConfigError
from kohort.config.racks import racks_of_nodes


@pytest.mark.parametrize(
    ("text", "nodes", "racks"),
    [
        (None, 2, (None, None)),
        ("", 1, (None,)),
        ("a", 3, ("a", "a", "a")),
        ("a, b", 2, ("a", "b")),
        ("a,b", 5, ("a", "b", "a", "b", "a")),
        ("a,,c", 3, ("a", None, "c")),
    ],
)
def test_the_racks_of_nodes(text, nodes, racks):
    assert racks_of_nodes(text, nodes) == racks


def test_a_rack_without_a_node_is_a_mistake():
    with pytest.raises(ConfigError, match="which are 3 racks, expected at most 2"):
        racks_of_nodes("a,b,c", 2)
