"""Floor 5: the broker."""
