# SPDX-License-Identifier: Apache-2.0
"""Partition logs: batches in, batches out, in Kafka's own on-disk format."""
