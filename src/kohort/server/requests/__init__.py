# SPDX-License-Identifier: Apache-2.0
"""What a handler answers with: tokens, steps, pieces, and a place to wait."""
