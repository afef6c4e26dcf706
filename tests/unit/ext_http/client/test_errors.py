"""Failures of an exchange: message, remedy, received part."""

from __future__ import annotations

from ext_http.client.errors import REMEDIES, ExchangeFailed, Refused


def test_an_error_ends_with_the_remedy_for_its_kind() -> None:
    failure = ExchangeFailed("connection", "Connection refused", "GET http://a/", after="1.2 s")
    assert failure.message == "GET http://a/: Connection refused (1.2 s)"
    assert failure.error == f"{failure.message}; {REMEDIES['connection']}"
    assert ExchangeFailed("timeout", "timed out").error == "timed out"
    assert ExchangeFailed("tls", "wrong version", remedy="renew it").error == "wrong version; renew it"


def test_the_received_part_is_in_the_error_and_the_outputs() -> None:
    failure = Refused("host a is refused")
    failure.add_response("received: 200 OK", {"status": 200})
    assert (failure.error, failure.details) == ("host a is refused; received: 200 OK", "received: 200 OK")
    assert failure.outputs == {"status": 200}
