"""The value that says how a client proves who it is."""

from kohort.security.settings import SASL_SSL, Security, Store


def test_secrets_are_not_shown() -> None:
    secret = "hunter2"
    store = Store(text=secret, password=secret)
    security = Security(
        protocol=SASL_SSL,
        trust=store,
        identity=store,
        key=store,
        username="alice",
        password=secret,
        token=lambda: secret,
        client_secret=secret,
        extensions={"trace": secret},
    )
    assert secret not in repr(security)
    assert "alice" in repr(security)
