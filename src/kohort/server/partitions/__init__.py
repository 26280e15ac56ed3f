# SPDX-License-Identifier: Apache-2.0
"""The partitions of topics: their logs, what is known of them, and the work on the disk."""
