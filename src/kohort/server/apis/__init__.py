"""What a node does with each request, by theme: answer it, or bring it to the shards it is for."""
