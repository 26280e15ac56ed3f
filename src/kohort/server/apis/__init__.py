# SPDX-License-Identifier: Apache-2.0
"""What a node does with each request, by theme: answer it, or pass it on to shards."""
