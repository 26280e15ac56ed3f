"""Where this process looks for stores, for those that work for it. Credentials stay where they are:
every process finds its own.
"""

import os
from collections.abc import Mapping

S3 = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION")


def of_this_process() -> dict[str, str]:
    """What to tell another process."""
    return {name: os.environ[name] for name in S3 if name in os.environ}


def adopt(told: Mapping[str, str]) -> None:
    """Look where another process does."""
    os.environ.update(told)
