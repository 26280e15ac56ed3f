"""Kohort: consumer groups for the Kafka protocol."""
