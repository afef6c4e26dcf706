"""Install pip into the environment that runs this: from the package index, with the standard library alone.

For a Python that has neither ensurepip nor pip, as Debian's without python3-venv and python3-pip. The index
is the one that pip itself would ask: PIP_INDEX_URL, or PyPI. The wheel's hash is checked against the one that
the index names.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import urlopen

INDEX = "https://pypi.org/simple"
TIMEOUT_SECONDS = 60
WHEEL_SUFFIX = "-py3-none-any.whl"


class Links(HTMLParser):
    """The links of an index page (PEP 503)."""

    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the address of an `a` element."""
        self.hrefs += [value for name, value in attrs if tag == "a" and name == "href" and value]


def release(address: str) -> tuple[int, ...]:
    """Return the version of a pip wheel as numbers; () for other files and for pre-releases."""
    name = Path(urlsplit(address).path).name
    version = name.removeprefix("pip-").removesuffix(WHEEL_SUFFIX)
    parts = version.split(".")
    return tuple(map(int, parts)) if name.endswith(WHEEL_SUFFIX) and all(map(str.isdigit, parts)) else ()


def main() -> None:
    """Find the newest pip, check it, and let it install itself."""
    page = f"{os.environ.get('PIP_INDEX_URL', INDEX).rstrip('/')}/pip/"
    links = Links()
    with urlopen(page, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - the address is the user's own index
        links.feed(response.read().decode())
    address, fragment = urldefrag(urljoin(page, max(links.hrefs, key=release)))
    with urlopen(address, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - as above
        data: bytes = response.read()
    found = f"sha256={hashlib.sha256(data).hexdigest()}"
    if fragment != found:
        sys.exit(f"expected {fragment or 'a sha256 hash in the link'}, found {found} for {address}")
    with tempfile.TemporaryDirectory() as directory:
        wheel = Path(directory) / Path(urlsplit(address).path).name
        wheel.write_bytes(data)
        subprocess.run([sys.executable, f"{wheel}/pip", "install", "--no-index", str(wheel)], check=True)


if __name__ == "__main__":
    main()
