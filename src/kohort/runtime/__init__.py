"""Floor 4: where the coordinator and its log meet, and in which order."""
