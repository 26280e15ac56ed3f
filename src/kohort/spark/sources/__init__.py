"""Where raw rows come from: one contract, several classes."""
