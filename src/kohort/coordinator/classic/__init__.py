"""The classic group protocol: members join, the leader assigns, everybody syncs; a file for each
verb.

Of all this the log knows only the outcome of a finished rebalance (`replay`). What lies
between two outcomes is soft state, which a restart forgets.
"""
