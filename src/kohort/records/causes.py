"""Why something has happened to a group."""

from enum import StrEnum


class Cause(StrEnum):
    """What has led to a record."""

    EXPIRY = "offset expiry"
