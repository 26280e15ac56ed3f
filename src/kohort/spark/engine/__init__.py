# SPDX-License-Identifier: Apache-2.0
"""Spark itself: how a session is found, started, watched and left, and what its workers need."""
