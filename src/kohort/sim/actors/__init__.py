"""The clients of a simulated cluster, a file for each kind."""
