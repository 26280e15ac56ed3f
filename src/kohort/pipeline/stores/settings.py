# SPDX-License-Identifier: Apache-2.0
"""Where this process looks for stores, for those that work for it. Credentials stay where they are:
every process finds its own.
"""

import os
from collections.abc import Mapping
from getpass import getuser

S3 = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION")
AZURE_ENDPOINTS = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
CLOUDS = ("GOOGLE_BASE_URL", "AZURE_STORAGE_ACCOUNT_NAME", *AZURE_ENDPOINTS)
HADOOP_USER = "HADOOP_USER_NAME"


def of_this_process() -> dict[str, str]:
    """What to tell another process."""
    found = {name: os.environ[name] for name in (*S3, *CLOUDS) if name in os.environ}
    name = user()
    return found if name is None else {**found, HADOOP_USER: name}


def adopt(variables: Mapping[str, str]) -> None:
    """Look where another process does."""
    os.environ.update(variables)


def user() -> str | None:
    """As whom this process asks a name node; None where this system does not know either."""
    try:
        return os.environ.get(HADOOP_USER) or getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        return None
