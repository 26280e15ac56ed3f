# SPDX-License-Identifier: Apache-2.0
"""The settings of an admin client, under upstream's names with underscores for dots."""

from dataclasses import dataclass

from kohort.client.settings import text, whole


@dataclass(frozen=True, kw_only=True)
class AdminSettings:
    """Times are milliseconds. `default_api_timeout_ms` is for one call altogether."""

    client_id: str = text("kohort-admin")
    default_api_timeout_ms: int = whole(30_000, 1)
    socket_connection_setup_timeout_ms: int = whole(10_000, 1)
