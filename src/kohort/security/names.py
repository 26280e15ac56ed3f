# SPDX-License-Identifier: Apache-2.0
"""The words of settings about security, as upstream has them: those of brokers and of clients."""

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)

PLAIN = "PLAIN"
SCRAM_SHA_256, SCRAM_SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)

CLIENT_AUTH = ("none", "requested", "required")  # whether clients are asked for a certificate
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
