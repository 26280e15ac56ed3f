# SPDX-License-Identifier: Apache-2.0
"""What facts call a partition."""

PartitionId = tuple[bytes, int]
"""A partition: the id of its topic, and its index."""
