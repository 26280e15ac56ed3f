# SPDX-License-Identifier: Apache-2.0
"""No request, however large, takes the broker from the others: every API that is served, each in
the ways in which its arrays can be filled.
"""

import pytest
from tests.prove.sweep.sweeping import WAIT_S, sweeping, swept_apis, table

pytestmark = [pytest.mark.prove, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def sweep():
    with sweeping() as one:
        yield one


@pytest.mark.parametrize("api", swept_apis(), ids=lambda api: api.name)
def test_the_largest_requests_of_an_api_let_others_in(sweep, api):
    rows = list(sweep.rows(api))
    print(table(rows))
    bad = [row for row in rows if row.holds_others_up]
    slow = sum(row.wait_s > WAIT_S for row in rows)
    assert not bad, f"{len(bad)} hold others up, {slow} for more than {WAIT_S} s\n{table(bad)}"
