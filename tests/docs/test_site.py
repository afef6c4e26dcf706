"""The documentation site: what is on it, that it loads nothing from elsewhere, and what it does in a browser."""

from __future__ import annotations

import fcntl
import fnmatch
import functools
import html
import importlib.util
import itertools
import re
import subprocess
import sys
import threading
import tomllib
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from docs.site.__main__ import OTHER_PAGES, generate, navigation, page_names, prepare
from tests.docs.pages import ROOT, blocks, commands
from tests.support.browser import CHROMIUM, Browser

if TYPE_CHECKING:
    from collections.abc import Iterator

needs_generator = pytest.mark.skipif(
    importlib.util.find_spec("zensical") is None, reason="the generator of the site is missing; `make site` installs it"
)
needs_browser = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
SEARCH_RESULTS = """
    [...document.querySelectorAll('div')].map((e) => e.shadowRoot).filter(Boolean)
        .flatMap((root) => [...root.querySelectorAll('a')]).map((a) => [a.innerText, a.href])
"""
# Text that each copy button of a terminal session copies.
COPY_ALL_SESSIONS = """
    (async () => {
        let copied = '';
        document.execCommand = () => { copied = document.activeElement.value; return true; };
        const texts = [];
        for (const button of document.querySelectorAll('.language-console button')) {
            copied = '';
            button.click();
            while (!copied) await new Promise(requestAnimationFrame);
            texts.push(copied);
        }
        return texts;
    })()
"""


class Addresses(HTMLParser):
    """The addresses in a page, by what is done with them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("prev", "next", "canonical"):
            self.loaded.append(given["href"])
        self.loaded += [given[name] for name in ("src", "data", "poster") if name in given]
        self.loaded += [each.split()[0] for each in given.get("srcset", "").split(",") if each]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, once for all workers."""
    folder = tmp_path_factory.getbasetemp()
    if folder.name.startswith("popen-"):
        folder = folder.parent
    folder /= "site"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "site" / "index.html").exists():
            subprocess.run([sys.executable, "-m", "docs.site", str(folder)], cwd=ROOT, check=True)
    return folder / "site"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the site; yields its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


def listed(site: Path) -> list[str]:
    """Return the pages that a reader finds in the navigation, and some copies of files."""
    pages = [str(path.relative_to(site)) for path in sorted(site.rglob("*.html"))]
    files = [page for page in pages if page.startswith("files/")]
    return [page for page in pages if page not in files and not page.startswith("recordings/")] + files[::20]


# --- Without a browser ----------------------------------------------------------------------------------------------


def build(repository: Path, folder: Path) -> None:
    """Build the site of a repository, without recordings."""
    prepare(repository, folder)
    generate(folder)


def test_every_page_of_the_documentation_is_in_the_navigation() -> None:
    pages = [*page_names(ROOT / "docs"), *OTHER_PAGES.values()]
    assert sorted(itertools.chain(*navigation(pages).values())) == sorted(pages)


def test_the_navigation_names_no_page_that_does_not_exist() -> None:
    pages = [*page_names(ROOT / "docs"), *OTHER_PAGES.values()]
    named = itertools.chain(*tomllib.loads((ROOT / "docs" / "site" / "nav.toml").read_text()).values())
    assert [name for name in named if not fnmatch.filter(pages, name)] == []


def test_a_page_that_is_not_in_the_navigation_fails_the_build() -> None:
    with pytest.raises(LookupError, match=r"not in the navigation: new\.md; add"):
        navigation(["index.md", "new.md"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a page](missing.md)", "docs/missing.md does not exist"),
        ("[a file](../missing.py)", "missing.py does not exist"),
        ("[a heading](#missing)", "anchor does not exist"),
        ("[a heading](../CHANGELOG.md#missing)", "anchor does not exist"),
    ],
)
@needs_generator
def test_a_link_that_leads_nowhere_fails_the_build(
    tmp_path: Path, text: str, problem: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs" / "images").mkdir(parents=True)
    (tmp_path / "README.md").write_text("# Readme\n\n## Install\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n")
    (tmp_path / "SECURITY.md").write_text("# Security policy\n")
    (tmp_path / "docs" / "index.md").write_text(f"# Start\n\n{text}\n")
    with pytest.raises((subprocess.CalledProcessError, FileNotFoundError)) as raised:
        build(tmp_path, tmp_path / "build")
    assert problem in f"{raised.value} {capfd.readouterr().err}"


@needs_generator
def test_links_lead_to_pages_and_anchors_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {path: Addresses(path.read_text()) for path in site.rglob("*.html") if path.parent.name != "recordings"}
    assert len(pages) > 50
    for path, found in pages.items():
        for each in found.links + found.loaded:
            # 404.html is shown at any address, so that its links begin with that of the site.
            there = urlsplit(urljoin(path.as_uri(), f"{site}{each}" if each.startswith("/") else each))
            if there.scheme != "file":
                assert each in found.links, f"{path} loads {each}"
                continue
            target = Path(unquote(there.path))
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{path} links to {each}"
            if there.fragment and target in pages:
                assert unquote(there.fragment) in pages[target].anchors, f"{path} links to {each}"


@needs_generator
def test_style_sheets_load_nothing_from_elsewhere(site: Path) -> None:
    styles = [path.read_text() for path in site.rglob("*.css")]
    assert len(styles) >= 2
    assert [
        match for style in styles for match in re.findall(r"(?:url\(['\"]?|@import\s*['\"]?)(https?:|//)", style)
    ] == []


@needs_generator
def test_every_page_allows_only_its_own_scripts(site: Path) -> None:
    for page in site.rglob("*.html"):
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.read_text())
        assert policy, page
        scripts = re.search(r"script-src ([^;]*)", html.unescape(policy[1]))
        assert scripts, page
        assert re.fullmatch(r"('self'|'sha256-[\w+/=]+'|\s)+", scripts[1]), page


@needs_generator
def test_blocks_are_highlighted_and_named_after_their_files(site: Path) -> None:
    page = (site / "writing-extensions.html").read_text()
    assert '<span class="filename">docs/examples/greeter.py</span>' in page
    assert re.search(r'class="language-python highlight">.*?<span class="kn">import</span>', page, re.DOTALL)


@needs_generator
def test_no_markup_is_shown_as_text(site: Path) -> None:
    for path in site.rglob("*.html"):
        article = re.search(r"<article.*?</article>", path.read_text(), re.DOTALL)
        if article:
            text = re.sub(r"<(pre|code|script)\b.*?</\1>|<[^>]*>", "", article[0], flags=re.DOTALL)
            shown = re.findall(r"\]\(.*|.*`.*|^[ \t]*\|.*|^#+ .*|<!--.*", html.unescape(text), re.MULTILINE)
            assert shown == [], path


@needs_generator
def test_files_of_the_repository_are_pages_of_the_site(site: Path) -> None:
    folder = Addresses((site / "files/docs/examples/booking/index.html").read_text())
    assert "eval.yaml.html" in folder.links
    copy = re.sub(r"<[^>]*>", "", (site / "files/docs/examples/booking/eval.yaml.html").read_text())
    assert (ROOT / "docs/examples/booking/eval.yaml").read_text() in html.unescape(copy)


# --- In a browser ---------------------------------------------------------------------------------------------------


@needs_generator
@needs_browser
def test_no_page_is_wider_than_a_phone_or_reports_a_problem(site: Path, address: str, browser: Browser) -> None:
    browser.problems.clear()
    browser.requests.clear()
    browser.open(f"{address}/index.html", width=390, height=844)
    for page in listed(site):
        browser.load(f"{address}/{page}")
        wide = browser.run(
            """(() => {
                const scrolls = (e) => e && e !== document.body
                    && (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
                return [...document.querySelectorAll('article *')]
                    .filter((e) => e.getBoundingClientRect().right > innerWidth && !scrolls(e))
                    .concat([...document.querySelectorAll('.md-typeset__table table')]
                        .filter((e) => e.getBoundingClientRect().right > innerWidth))
                    .map((e) => e.outerHTML.slice(0, 300)).concat(
                        document.documentElement.scrollWidth > innerWidth ? ['the page'] : []);
            })()"""
        )
        assert wide == [], page
        assert browser.problems == [], page
    assert [url for url in browser.requests if not url.startswith((address, "data:", "blob:", "about:"))] == []


@pytest.mark.parametrize(
    ("words", "title", "page"),
    [
        ("mock-verify", "mock-verify", "/reference/ext-http.html"),
        ("create-namespace", "create-namespace", "/reference/ext-kubernetes.html"),
        ("--max-age", "verify", "/reference/ext-recorder.html"),
    ],
)
@needs_generator
@needs_browser
def test_the_search_finds_an_operation_and_an_option(
    address: str, browser: Browser, words: str, title: str, page: str
) -> None:
    browser.open(f"{address}/index.html")
    browser.click(".md-search__button")
    browser.wait("document.activeElement.shadowRoot?.activeElement?.tagName === 'INPUT'")
    browser.press(*words)
    browser.wait(f"({SEARCH_RESULTS}).some(([text, url]) => text.startsWith('{title}\\n') && url.includes('{page}'))")
    # Results are replaced while they are typed; those of the complete words are on the first page.
    found: list[list[str]] = browser.run(SEARCH_RESULTS)
    assert any(text.split("\n")[0] == title and urlsplit(url).path == page for text, url in found[:10]), found
    assert not any("/files/" in url for _, url in found)


@needs_generator
@needs_browser
def test_pages_can_be_read_without_scripts(address: str, browser: Browser) -> None:
    browser.open(f"{address}/index.html", width=390, height=844)
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    for page, text in (("index.html", "Where to begin"), ("reference/ext-http.html", "mock-verify")):
        browser.load(f"{address}/{page}")
        assert browser.run("document.documentElement.className") == "no-js"
        seen: str = browser.run("document.querySelector('article').innerText")
        assert text in seen
        assert browser.run("document.querySelector('article').checkVisibility({opacityProperty: true})")
        browser.run("document.head.insertAdjacentHTML('beforeend', '<style>* { transition: none !important }</style>')")
        navigation_left = "document.querySelector('.md-sidebar--primary').getBoundingClientRect().left"
        assert browser.run(navigation_left) < 0
        browser.click(".md-header label[for=__drawer]")
        assert browser.run(navigation_left) >= 0


@needs_generator
@needs_browser
def test_the_embedded_recordings_can_be_clicked_through(address: str, browser: Browser) -> None:
    browser.problems.clear()
    browser.open(f"{address}/viewer.html")
    assert browser.run("scrollY") == 0
    for number, text in ((0, "openai"), (1, "tools/call")):
        inside = f"document.querySelectorAll('iframe')[{number}].contentDocument"
        browser.run(f"document.querySelectorAll('iframe')[{number}].scrollIntoView({{block: 'center'}})")
        place = browser.run(
            f"""(() => {{
                const frame = document.querySelectorAll('iframe')[{number}].getBoundingClientRect();
                const rows = [...{inside}.querySelectorAll('#rows-shown .row')];
                const row = rows.find((e) => e.textContent.includes('{text}'));
                const box = row.getBoundingClientRect();
                return [frame.left + box.left + box.width / 2, frame.top + box.top + box.height / 2];
            }})()"""
        )
        browser.drag(place, place)
        browser.wait(f"{inside}.querySelector('#detail').checkVisibility()")
        assert text.split("/")[0] in browser.run(f"{inside}.querySelector('#title').textContent")
    assert browser.problems == []


@needs_generator
@needs_browser
def test_the_copy_buttons_of_sessions_copy_the_commands(address: str, browser: Browser) -> None:
    sessions: dict[str, list[str]] = {}
    for block in blocks():
        if block.kind == "console":
            page = OTHER_PAGES.get(block.page, block.page.removeprefix("docs/"))
            sessions.setdefault(page, []).append("\n".join(command.text for command in commands(block)))
    assert len(sessions) > 10
    browser.open(f"{address}/index.html")
    for page, expected in sessions.items():
        address_of_page = re.sub(r"\.md$", ".html", page.replace("README.md", "index.md"))
        browser.load(f"{address}/{address_of_page}")
        copied: list[str] = browser.run(COPY_ALL_SESSIONS)
        assert [text.strip() for text in copied] == expected, page


@pytest.mark.parametrize(("width", "title"), [(390, '"description"'), (1440, "none")])
@needs_generator
@needs_browser
def test_a_row_of_a_wide_table_is_a_list_on_a_phone(address: str, browser: Browser, width: int, title: str) -> None:
    browser.open(f"{address}/reference/ext-http.html", width=width, height=844)
    cell = "document.querySelector('td[data-title=description]')"
    style = browser.run(f"getComputedStyle({cell}, '::before').content")
    assert style in {title, "attr(data-title)" if width == 390 else "none"}


@needs_generator
@needs_browser
def test_a_reader_can_choose_the_dark_theme(address: str, browser: Browser) -> None:
    colors = set()
    for dark in (False, True):
        browser.open(f"{address}/index.html", dark=dark)
        colors.add(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert len(colors) == 2
    browser.open(f"{address}/index.html", dark=True)
    before = browser.run("document.body.dataset.mdColorScheme")
    browser.click("form[data-md-component=palette] label:not([hidden])")
    browser.wait(f"document.body.dataset.mdColorScheme !== '{before}'")
