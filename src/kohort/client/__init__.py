# SPDX-License-Identifier: Apache-2.0
"""The client's side of the protocol: one broker, one cluster, and the admin client on top."""
