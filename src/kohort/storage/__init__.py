"""Partition logs: batches in, batches out, in Kafka's own on-disk format."""
