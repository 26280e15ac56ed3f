"""From bytes to handlers and back: sockets, connections, the dispatcher and its routes."""
