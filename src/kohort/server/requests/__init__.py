"""What a handler answers with: tokens, steps, pieces, and a place to wait."""
