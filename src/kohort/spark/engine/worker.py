# SPDX-License-Identifier: Apache-2.0
"""What a Python worker of Spark does once, before its first task of ours."""

import gc

from pyspark import TaskContext


def settle() -> None:
    """Leave what is loaded by now out of garbage collection.

    Spark collects garbage after every task. To look through the modules of a worker (pyarrow,
    pandas, pyspark) takes 40 ms each time, which is more than a small task needs for its rows.
    Nothing happens outside of a worker, or when something has been left out before.
    """
    if TaskContext.get() is not None and not gc.get_freeze_count():
        gc.freeze()
