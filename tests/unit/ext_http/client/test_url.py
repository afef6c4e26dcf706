"""URLs of requests and redirects."""

from __future__ import annotations

import pytest

from ext_http.client.url import check, join, normalized, parse
from ext_sdk import InvalidArgs


def test_user_and_password_are_taken_out_of_the_url() -> None:
    target = parse("http://me:p%40ss@Shop.test:8080/a?b=1#c")
    assert (target.url, target.user) == ("http://shop.test:8080/a?b=1", ("me", "p@ss"))
    assert target.origin == ("http", "shop.test", 8080)
    assert target.trusted is None
    assert target._replace(literal=True).trusted == ("shop.test", 8080)


@pytest.mark.parametrize("url", ["ftp://a/", "a/b", "http://", "http://a:0/", "http://a:x/", "http://[::1/"])
def test_a_text_that_is_not_an_http_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgs, match="expected a URL"):
        check(url)


def test_names_are_encoded_and_fragments_dropped() -> None:
    assert normalized("http://straße.test/ä#x") == "http://xn--strae-oqa.test/%C3%A4"


@pytest.mark.parametrize(
    ("location", "url"),
    [("/b", "https://a.test/b"), ("?c=1", "https://a.test/x/y?c=1"), ("http://b.test/", "http://b.test/")],
)
def test_a_location_is_relative_to_the_url_of_its_request(location: str, url: str) -> None:
    assert join("https://a.test/x/y", location).url == url
