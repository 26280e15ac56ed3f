"""Partitions with a machine, how these are loaded, and how transactions reach them."""
