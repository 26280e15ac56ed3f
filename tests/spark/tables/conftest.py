# SPDX-License-Identifier: Apache-2.0
"""Plans of tests look at few rows: to compile one takes longer than to run it.

The same runs on compiled plans are what tests/cli, tests/pipeline/stores and `make prove` see.
"""

import pytest

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(autouse=True)
def interpreted(request):
    """Whoever takes the session has its plans interpreted, but in `make prove`."""
    if "spark" not in request.fixturenames or request.node.get_closest_marker("prove"):
        yield
        return
    conf = request.getfixturevalue("spark").conf
    before = {name: conf.get(name) for name in INTERPRETED}
    for name, value in INTERPRETED.items():
        conf.set(name, value)
    yield
    for name, value in before.items():
        conf.set(name, value)
