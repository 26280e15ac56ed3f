# SPDX-License-Identifier: Apache-2.0
"""What both sides of a connection need to trust each other: SASL, certificates, their settings."""
