# SPDX-License-Identifier: Apache-2.0
"""Partitions with a machine, how these are loaded, and how transactions reach them."""
