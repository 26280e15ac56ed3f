"""Layer 2: what stands in `__consumer_offsets`."""
