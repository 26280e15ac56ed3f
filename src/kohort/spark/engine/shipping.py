# SPDX-License-Identifier: Apache-2.0
"""Our package on the executors of a cluster: the job brings it along.

The nodes need Python with pyspark, numpy, pyarrow and what Kohort depends on; Kohort itself, which
is pure Python, travels as a zip of its files.
"""

import atexit
import hashlib
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from pyspark.errors import PySparkAttributeError
from pyspark.sql import SparkSession

from kohort import errors
from kohort.spark.engine.session import is_local

_WHOLE = (1980, 1, 1, 0, 0, 0)


def ship(spark: SparkSession) -> None:
    """Make `import kohort` work in the workers of a session, unless they are our own machine's."""
    try:
        context = spark.sparkContext
    except PySparkAttributeError:  # Spark Connect
        spark.addArtifacts(str(package()), pyfile=True)
        return
    if not is_local(context.master or ""):
        context.addPyFile(str(package()))


@cache
def package() -> Path:
    """The package as a zip, named by its content: a changed one is another file for Spark."""
    root = Path(errors.__file__).parent
    files = sorted(root.rglob("*.py")) + sorted(root.rglob("py.typed"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    folder = Path(tempfile.mkdtemp(prefix="kohort-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors ask for it until then
    path = folder / f"kohort-{digest.hexdigest()[:12]}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            name = f"kohort/{file.relative_to(root).as_posix()}"
            archive.writestr(zipfile.ZipInfo(name, _WHOLE), file.read_bytes())
    return path
