"""Build the documentation site: `make site` (`python -m docs.site [FOLDER]`), into build/site.

The pages of docs/ are Markdown for GitHub. They are copied to FOLDER/site-pages with these changes:

- links to files of the repository lead to copies of these files, which are pages of the site, too;
- a code block that names its file has the name as its title;
- below `<!-- viewer: NAME -->`, the picture is replaced by the page of `ext-recorder view` itself.

Zensical makes FOLDER/site of them, and refuses links that lead nowhere. Each page then gets titles in the cells of wide
tables, for phones, commands that can be copied without their output, and a content security policy that allows nothing
from elsewhere, and no script but those of the site. SITE_URL is the address where the site is published, for its page
for addresses that do not exist.
"""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import itertools
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from .recordings import record_eval, view

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
# Pages outside of docs/.
OTHER_PAGES = {"README.md": "quick-start.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "vulnerabilities.md"}
CASSETTE = "cassettes/mcp/time.yaml"
LARGEST_COPY = 64_000  # bytes
VISIBLE = re.compile(r"(?<![^/])\.")  # the generator leaves out files whose names begin with a dot
LANGUAGES = {
    ".py": "python",
    ".yaml": "yaml",
    ".json": "json",
    ".toml": "toml",
    ".go": "go",
    ".rs": "rust",
    ".mjs": "js",
}

# Beginning of a page that the search leaves out.
UNLISTED = "---\nsearch:\n  exclude: true\n---\n\n"

# Code is found first, so that nothing in it is taken for a link.
TOKEN = re.compile(
    r"^(?P<fence>```+)(?P<info>.*)\n(?P<code>(?:.*\n)*?)(?P=fence)$"
    r"|(?P<inline>(?<!`)(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))"
    r"|<!-- viewer: (?P<viewer>\S+) -->\n.*\n"
    r"|(?P<comment><!--.*?-->)"
    r"|\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)"
    r"|(?P<attribute> (?:src|srcset)=)\"(?P<image>[^\":]+)\"",
    re.MULTILINE,
)
POLICY = (
    "default-src 'none'; script-src 'self'{hashes}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self' blob:; frame-src 'self'; base-uri 'none'; "
    "form-action 'none'"
)


@dataclass
class Pages:
    """The pages of a site while they are prepared.

    Args:
        repository: the folder whose docs/ are the pages.
        folder: where the prepared pages are written.
    """

    repository: Path
    folder: Path
    copied: set[str] = field(default_factory=set)

    def add_all(self) -> list[str]:
        """Write all pages. Return the paths of those that a reader finds in the navigation."""
        sources = {f"docs/{name}": name for name in page_names(self.repository / "docs")}
        sources |= OTHER_PAGES
        for source, page in sources.items():
            try:
                text = self.prepared((self.repository / source).read_text(), source, page)
            except FileNotFoundError as error:
                raise FileNotFoundError(f"{source}: {error}") from error
            if page == "quick-start.md":  # README begins with what the start page says, too
                text = re.sub(r"\A(?s:.*?)(?=^## )", "# Quick start\n\n", text, count=1, flags=re.MULTILINE)
            elif page == "changelog.md":  # it names everything, so that it would be found before the page about it
                text = UNLISTED + text
            self._write(page, text)
        return list(sources.values())

    def prepared(self, text: str, source: str, page: str) -> str:
        """Return the text of a page for the site.

        Args:
            text: the page.
            source: its path in the repository.
            page: its path on the site.
        """

        def token(match: re.Match[str]) -> str:
            if match["fence"]:
                return f"{match['fence']}{fence_info(match['info'])}\n{match['code']}{match['fence']}"
            if match["viewer"]:
                return embedded(match["viewer"])
            if match["comment"]:
                return ""
            link = match["target"] or match["image"]
            if match["inline"] or not link or re.match(r"\w+:", link):
                return match[0]
            path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
            target = posixpath.relpath(self.site_path(path), posixpath.dirname(page) or ".")
            return f'{match["attribute"]}"{target}"' if match["image"] else f"]({target}{match['anchor'] or ''})"

        return TOKEN.sub(token, text)

    def site_path(self, path: str) -> str:
        """Return the path on the site of a file of the repository, which is copied if it is not part of docs/.

        Raises:
            FileNotFoundError: it does not exist.
        """
        if path in OTHER_PAGES:
            return OTHER_PAGES[path]
        source = self.repository / path
        if not source.exists():
            raise FileNotFoundError(f"a link leads nowhere: {path} does not exist; correct the link")
        if path.startswith("docs/") and (path.endswith(".md") or path.startswith("docs/images/")):
            return path.removeprefix("docs/")
        if source.is_dir():
            return self._copy_folder(path)
        return self._copy_text(path)

    def _copy_text(self, path: str) -> str:
        source = self.repository / path
        if source.stat().st_size > LARGEST_COPY:
            target = self.folder / "files" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            return f"files/{path}"
        page = f"files/{VISIBLE.sub('dot-', path)}.md"
        if page not in self.copied:
            self.copied.add(page)
            language = LANGUAGES.get(source.suffix, "text")
            self._write(page, f"{UNLISTED}# {path}\n\n````{language}\n{source.read_text().rstrip()}\n````\n")
        return page

    def _copy_folder(self, path: str) -> str:
        page = f"files/{path}/index.md"
        if page not in self.copied:
            self.copied.add(page)
            lines = []
            for file in sorted((self.repository / path).rglob("*")):
                if file.is_file() and not file.is_symlink() and "__pycache__" not in file.parts:
                    copy = self.site_path(str(file.relative_to(self.repository)))
                    link = posixpath.relpath(copy, f"files/{path}")
                    lines.append(f"- [{file.relative_to(self.repository / path)}]({link})\n")
            self._write(page, f"{UNLISTED}# {path}\n\n{''.join(lines)}")
        return page

    def _write(self, page: str, text: str) -> None:
        target = self.folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def page_names(docs: Path) -> list[str]:
    """Return the paths of the pages below docs/."""
    return sorted(str(path.relative_to(docs)) for path in docs.rglob("*.md"))


def fence_info(info: str) -> str:
    """Return the words after a fence as the generator understands them: the language, and the file as a title."""
    language, _, rest = info.strip().partition(" ")
    file = re.search(r"\bfile=(\S+)", rest)
    return f'{language} title="{file[1]}"' if file else language


def embedded(name: str) -> str:
    """Return the HTML that shows the page of a recording."""
    address = f"recordings/{name}.html"
    return (
        f'<iframe class="viewer" src="{address}" title="The recording {name}"></iframe>\n\n'
        f'<p><a href="{address}" target="_blank" rel="noopener">Open this recording on a page of its own</a></p>\n'
    )


def navigation(pages: list[str]) -> dict[str, list[str]]:
    """Return the sections of nav.toml with the pages that exist.

    Raises:
        LookupError: a page is in no section.
    """
    sections: dict[str, list[str]] = tomllib.loads((HERE / "nav.toml").read_text())
    found = {
        title: [page for name in names for page in fnmatch.filter(pages, name)] for title, names in sections.items()
    }
    if unlisted := set(pages).difference(*found.values()):
        raise LookupError(
            f"pages are not in the navigation: {', '.join(sorted(unlisted))}; add them to docs/site/nav.toml"
        )
    return {title: names for title, names in found.items() if names}


def with_labels(page: str) -> str:
    """Return an HTML page whose tables can be read on a phone: see site.css.

    Short names in cells are not broken into lines. Tables of four and more columns have the title of its column in
    each cell, for rows that are lists.
    """

    def table(match: re.Match[str]) -> str:
        titles = re.findall(r"<th[^>]*>(.*?)</th>", match[0])
        text = re.sub(r"<code>(?=[^<\s]{1,18}</code>)", '<code class="name">', match[0])
        if len(titles) < 4:
            return text
        numbers = itertools.count()
        return re.sub(r"<td(?=[ >])", lambda _: f'<td data-title="{titles[next(numbers) % len(titles)]}"', text)

    return re.sub(r"<table>.*?</table>", table, page, flags=re.DOTALL)


def with_commands(page: str) -> str:
    """Return an HTML page in whose terminal sessions output is marked as such, with the ends of its lines.

    The highlighter treats output that begins with # as a command. The copy button leaves out what is marked: see
    site.css. A message of one line, which is wrapped, gets a class.
    """

    def session(match: re.Match[str]) -> str:
        lines, command = [], False
        for line in match["lines"].splitlines(keepends=True):
            text = re.sub(r"<[^>]*>", "", line)
            first = text.startswith("$ ")
            if not first and command:  # the command continues
                lines.append(text if 'class="g' in line else line)
            else:
                lines.append(line if first else f'<span class="go">{text}</span>')
            command = (first or command) and text.endswith("\\\n")
        return f"{match['start']}{''.join(lines)}</code>"

    page = re.sub(
        r'(?P<start><div class="language-console [^>]*>.*?<code>)(?P<lines>.*?)</code>', session, page, flags=re.DOTALL
    )
    return re.sub(r'(<div class="language-text)( [^>]*>.*?<code>[^\n]*\n</code>)', r"\1 message\2", page)


def with_policy(page: str) -> str:
    """Return an HTML page with its content security policy: of scripts in the page, only those that it has now."""
    scripts = re.findall(r"<script(?![^>]*\b(?:src|type)=)[^>]*>(.*?)</script>", page, re.DOTALL)
    digests = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts}
    policy = POLICY.format(hashes="".join(f" 'sha256-{digest}'" for digest in sorted(digests)))
    return page.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{policy}">', 1)


def prepare(repository: Path, folder: Path) -> None:
    """Write the pages of a repository and the configuration of the generator, in place of older ones."""
    pages_folder = folder / "site-pages"
    for old in (pages_folder, folder / "site", folder / ".cache"):
        shutil.rmtree(old, ignore_errors=True)
    pages = Pages(repository, pages_folder).add_all()
    shutil.copytree(repository / "docs" / "images", pages_folder / "images", dirs_exist_ok=True)
    shutil.copyfile(HERE / "site.css", pages_folder / "site.css")
    # As TOML: JSON has the same lists and texts.
    sections = ", ".join(f"{{{json.dumps(title)} = {json.dumps(names)}}}" for title, names in navigation(pages).items())
    added = f"nav = [{sections}]\n"
    if address := os.environ.get("SITE_URL"):
        added += f"site_url = {json.dumps(address)}\n"
    config = (HERE / "zensical.toml").read_text().replace("[project]\n", f"[project]\n{added}", 1)
    (folder / "zensical.toml").write_text(config)


def add_recordings(folder: Path) -> None:
    """Write the pages of the recordings that the site shows."""
    recordings = folder / "site-pages" / "recordings"
    recordings.mkdir()
    view(ROOT / CASSETTE, recordings / "time.html")
    with TemporaryDirectory(prefix="eval-") as eval_folder:
        view(record_eval(Path(eval_folder)), recordings / "book-a-trip.html")


def generate(folder: Path) -> None:
    """Make FOLDER/site of the prepared pages.

    Raises:
        CalledProcessError: the generator refuses a page, and has printed the reason.
    """
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict", "--clean"], cwd=folder, check=True)
    for page in (folder / "site").rglob("*.html"):
        if page.parent.name != "recordings":  # these have a policy of their own
            page.write_text(with_policy(with_commands(with_labels(page.read_text()))))


def main() -> int:
    """Build the site, and print where it is."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        prepare(ROOT, folder)
        add_recordings(folder)
        generate(folder)
    except (subprocess.CalledProcessError, FileNotFoundError, LookupError) as error:
        print(f"could not build {folder / 'site'}: {error}", file=sys.stderr)
        return 1
    print(folder / "site" / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
