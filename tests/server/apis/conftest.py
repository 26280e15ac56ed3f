# SPDX-License-Identifier: Apache-2.0
import pytest
from tests.server.desk import Desk


@pytest.fixture
def desk():
    """A broker of one node, in memory."""
    return Desk()
