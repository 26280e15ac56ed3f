"""Consumer groups, the KIP-848 protocol: a member heartbeats, and everything follows from that.

`heartbeat` and `fencing` are what may happen to a member; `target` says what everybody should have,
`reconcile` how far one member may go towards it; `records` and `replay` are the two directions
between all this and the log.
"""
