# SPDX-License-Identifier: Apache-2.0
"""Consumer groups, the KIP-848 protocol: a member heartbeats, and everything follows from that.

`heartbeat` and `fencing` are what may happen to a member. `target` says what everybody should have,
and `reconcile` how far one member may go towards it. `records` and `replay` translate to the log
and back.
"""
