# SPDX-License-Identifier: Apache-2.0
"""From bytes to handlers and back: sockets, connections, the dispatcher and its routes."""
