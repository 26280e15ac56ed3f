"""Layer 1: bytes to messages and back."""
