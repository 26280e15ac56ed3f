# SPDX-License-Identifier: Apache-2.0
"""Archives of recorded files, unpacked."""

import tarfile
from pathlib import Path

# Python 3.11 knows filters from 3.11.4 on, and distributions have older ones.
_SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def unpack_into(directory: Path | str, archive: Path) -> None:
    """Every file of an archive, below a directory."""
    with tarfile.open(archive) as tar:
        tar.extractall(directory, **_SAFELY)
