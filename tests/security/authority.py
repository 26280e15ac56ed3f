# SPDX-License-Identifier: Apache-2.0
"""The authority that signed the recorded tokens: its public keys, as a JSON Web Key Set."""

import json

N = (
    "w1Wqrka6xvscE1RcmP8phLjvmEIxXEf2ypUCg1vG3yj_uXBrPyR2WUf7Z5rF9EQCwmK6bRgc52FAy6zjixKtkVSXv2WsG8LNH"
    "Vsnf1CrNL2IRqVPt9W8Jwzwac7p-Z9qetykDubVrRt5bjvnGkFcIHyimuPGfNWl092mn4pysxu7VbYjFRK2z1sCGPqW839ef5"
    "JBnAjGGguudXso5m4j5NdMYQBC9tXwm04529gE-HE-3G9u8E6ntI2aMioj6YfEFpNn2qR7YlOKM5KxiRTgYPthaNebneie5O8"
    "POkhZMGB9QEkibQlQ0m1Af4bCdS5GoIaKv1DmIutQhGTlFdTw1w"
)
RSA = {"kty": "RSA", "kid": "k1", "use": "sig", "alg": "RS256", "n": N, "e": "AQAB"}
EC = {
    "kty": "EC",
    "kid": "k2",
    "crv": "P-256",
    "x": "KceFN7qO2hKo3nly6KfAjpwd2TMHt9zVBcjZnRhsldc",
    "y": "61qe28E2qrCqkslorPDgo-F6XD6GJzcM5mp4jNjj7c0",
}
KEY_SET = json.dumps({"keys": [RSA, EC]}).encode()
