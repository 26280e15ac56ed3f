"""The members of groups as pure machines: no clock, no socket, no chance, no thread.

`membership` is a member of the KIP-848 protocol and `heartbeat` what it says. `events` is what a
machine tells the consumer that owns it, and `pauses` how long it waits after a failure.
"""
