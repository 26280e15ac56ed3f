"""Members for the campaigns with real clients."""

from tests.clients.crew import crew

__all__ = ["crew"]
