# SPDX-License-Identifier: Apache-2.0
"""A thousand descriptors are enough for five thousand partitions."""

import pytest
from tests.serve.few_descriptors import fill_and_restart

pytestmark = [pytest.mark.prove, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("sync", ["group", "none"])
def test_five_thousand_partitions_with_a_thousand_descriptors(tmp_path, sync):
    fill_and_restart(1000, 5, 1000, tmp_path, "-X", f"log.sync={sync}")
