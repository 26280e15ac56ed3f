"""Layer 3: the replicated state machine of consumer groups. No IO, no clock."""
