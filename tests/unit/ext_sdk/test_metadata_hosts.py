"""Where clouds hand out credentials."""

from __future__ import annotations

import pytest

from ext_sdk.metadata_hosts import hands_out_credentials


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.170.2",
        "168.63.129.16",
        "100.100.100.200",
        "fd00:ec2::254",
        "fd00:ec2::254%eth0",
        "::ffff:169.254.169.254",
        "2002:a9fe:a9fe::",
        "64:ff9b::169.254.169.254",
        "metadata",
        "Metadata.Google.Internal.",
    ],
)
def test_such_an_address_is_known_in_all_its_spellings(host: str) -> None:
    assert hands_out_credentials(host)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "::1", "169.254.1.1", "64:ff9b::8.8.8.8", "example.com", "metadata.test"]
)
def test_other_addresses_are_none(host: str) -> None:
    assert not hands_out_credentials(host)
