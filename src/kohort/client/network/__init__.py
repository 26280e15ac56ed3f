"""Connections to the brokers of a cluster, and what they say of it."""
