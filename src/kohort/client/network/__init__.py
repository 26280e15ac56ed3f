# SPDX-License-Identifier: Apache-2.0
"""Connections to the brokers of a cluster, and what they say of it."""
