"""The simulator: the real broker, with time, disk, network and clients played from a seed."""
