# SPDX-License-Identifier: Apache-2.0
"""Layer 1: bytes to messages and back."""
