"""The client's side of the protocol: one broker, one cluster, and the admin client on top."""
