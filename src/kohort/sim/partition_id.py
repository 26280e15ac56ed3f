"""What facts call a partition."""

Place = tuple[bytes, int]
"""A partition: the id of its topic, and its index."""
