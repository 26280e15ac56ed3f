"""Floor 3: logs in Kafka's own format."""
