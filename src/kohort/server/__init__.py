"""Layer 5: the broker."""
