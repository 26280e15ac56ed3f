"""What is answered without a coordinator, by theme."""
