"""What must be on the disk when an answer leaves, a file for each kind of log."""
