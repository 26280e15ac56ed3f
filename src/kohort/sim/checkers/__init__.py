"""What must never happen, a file for each property."""
