# SPDX-License-Identifier: Apache-2.0
"""What a run is about: folders and clusters, how to ask them, and whether they have changed."""
