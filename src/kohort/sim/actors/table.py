"""Which kinds of actors there are, and how many of each a run may have."""

from kohort.sim.actors.actor import Actor
from kohort.sim.actors.committer import Committer

KINDS: dict[str, tuple[type[Actor], int]] = {
    one.kind: (one, most) for one, most in ((Committer, 6),)
}
