# SPDX-License-Identifier: Apache-2.0
"""Members for the campaigns with real clients."""

from tests.clients.member_processes import crew

__all__ = ["crew"]
