"""Two pieces of work at once, for few rows.

Spark plans a query on one core, and runs one over few rows on one. What does not need each other
then takes as long as the longer of the two.
"""

from collections.abc import Callable
from typing import TypeVar

from pyspark import InheritableThread
from pyspark.sql import SparkSession

Here = TypeVar("Here")
There = TypeVar("There")


def side_by_side(
    spark: SparkSession, here: Callable[[], Here], there: Callable[[], There]
) -> tuple[Here, There]:
    """Both results, when both are there. `there` is called in a thread of its own.

    Raises what either has raised, when the other one has ended too: `here` first.
    """
    results: list[There] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(there())
        except BaseException as error:  # noqa: BLE001  (it is raised where both are waited for)
            errors.append(error)

    # Its jobs belong to the same stream or notebook cell as ours. If a second Ctrl-C leaves it
    # alone, it does not keep the process.
    thread = InheritableThread(work, session=spark, daemon=True)
    thread.start()
    try:
        mine = here()
        thread.join()
    finally:
        thread.join()  # after Ctrl-C: PySpark has ended the jobs that were running then
    if errors:
        raise errors[0]
    return mine, results[0]
