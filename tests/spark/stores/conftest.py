# SPDX-License-Identifier: Apache-2.0
"""The stores of the pipeline's own tests, on which runs of Spark write here."""

from tests.pipeline.stores.conftest import (  # noqa: F401
    azure,
    bucket,
    google,
    hdfs,
    key,
    objects,
    place,
    quick,
    server,
)
