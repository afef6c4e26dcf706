"""Documents within texts: in a fenced code block, or the first value of a format in prose.

Lines that look like YAML or TOML and are not valid are skipped; their beginning is not returned in their place. Text
that begins like an object or array of JSON and is not valid is an error: a check that something is missing would pass
on a later value.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from ext_sdk.core.text import counted

from .documents import FORMAT_NAMES, LONGEST, Format, NotDocument, parse_document
from .json_equality import NotJson, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_sdk.core.regex import Searcher

Extract = Literal["fenced", "first"]


class BrokenDocument(NotDocument):
    """Part of a text that begins like a document, and can't be read."""


# Words after the fence of a block, in lower case.
_LABELS = {
    "json": ("json", "json5", "jsonc"),
    "jsonLines": ("jsonl", "ndjson", "jsonlines", "json-lines"),
    "yaml": ("yaml", "yml"),
    "toml": ("toml",),
    "xml": ("xml", "svg", "xhtml"),
}
MOST_STARTS = 10_000  # places at which `first` tries to read a value


def read_document(text: str, form: Format = "json", extract: object = None, searcher: Searcher | None = None) -> object:
    """Return the document of a text as a JSON value.

    Args:
        form: jsonLines gives an array; YAML with several documents, too.
        extract: `fenced` or `first`, see `extracted`; anything else for the entire text.
        searcher: its deadline ends a long search.

    Raises:
        NotDocument: the text is not, or does not contain, a document of this format.
        SearchFailed: the deadline is over.
    """
    part = extracted(text, form, extract, searcher)
    try:
        return parse_document(part, form)
    except NotDocument as error:
        place = ", in the extracted part" if part != text else ""
        raise NotDocument(f"{error}{place}") from None


def extracted(text: str, form: Format, extract: object, searcher: Searcher | None = None) -> str:
    """Return a part of a text; the entire text unless `extract` is `fenced` or `first`.

    Args:
        form: `fenced` returns the content of the first fenced code block of this format, else of the first block
            without a language. `first` returns the first value that has members or items: an object or array of JSON,
            lines of JSON, a mapping or list of YAML, keys and tables of TOML, an element of XML. Arrays of integers
            are not values of JSON here: `[1]` may be a citation.

    Raises:
        NotDocument: the text has no such part; BrokenDocument if the first JSON in it is not valid.
        SearchFailed: the deadline is over.
    """
    if extract == "fenced":
        return _fenced(text, form)
    if extract != "first":
        return text
    if form == "json":
        return _first_value(text, searcher)
    if form == "jsonLines":
        return _first_lines(text)
    attempts = _Attempts(form, searcher)
    found = _FIRST[form](text.replace("\r\n", "\n"), attempts)
    if found is None:
        reason = f"; the first lines that look like it are not: {attempts.error}" if attempts.error else ""
        raise NotDocument(f"expected {_VALUES[form]} in the text, found none{reason}")
    return found


class _Block(NamedTuple):
    label: str
    content: str


_FENCE = re.compile(r"^([ \t>]*)(`{3,}|~{3,})[ \t]*([^`\n]*)$")


def _fenced(text: str, form: Format) -> str:
    blocks = list(_blocks(text))
    for label in (*_LABELS[form], ""):
        for block in blocks:
            if block.label == label:
                return block.content
    others = ", ".join(dict.fromkeys(block.label for block in blocks[:10]))
    found = f"{counted(len(blocks), 'block')} of other languages ({others})" if blocks else "no fenced block"
    raise NotDocument(f"expected a fenced block of {FORMAT_NAMES[form]}, or one without a language, found {found}")


def _blocks(text: str) -> Iterator[_Block]:
    """Yield the fenced code blocks of Markdown, also indented ones; a block without an end ends with the text."""
    fence, indent, label = "", 0, ""
    lines: list[str] = []
    for line in text.split("\n"):
        match = _FENCE.match(line.removesuffix("\r"))
        if not fence:
            if match:
                fence, indent, lines = match[2], len(match[1]), []
                label = (match[3].split() or [""])[0].strip("{}.").lower()
        elif match and match[2].startswith(fence) and not match[3].strip():
            yield _Block(label, "\n".join(lines))
            fence = ""
        else:
            lines.append(line[indent:] if not line[:indent].strip(" \t>") else line.lstrip(" \t"))
    if fence:
        yield _Block(label, "\n".join(lines))


_JSON_START = re.compile(r"""\{\s*["}]|\[\s*[\[{"\]]""")  # prose has other words in braces and brackets
_CITATION = re.compile(r"\[\s*\d+\s*(?:,\s*\d+\s*)*\]")


def _first_value(text: str, searcher: Searcher | None) -> str:
    decoder = json.JSONDecoder(parse_constant=_refuse)
    citations = 0
    for number, start in enumerate(re.finditer(r"[\[{]", text)):
        if number == MOST_STARTS:
            break
        if searcher:
            searcher.check_time()
        if _CITATION.match(text, start.start()):
            citations += 1
            continue
        try:
            _, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError) as error:
            if _JSON_START.match(text, start.start()):
                line = text.count("\n", 0, start.start()) + 1
                raise _unreadable(line, error) from None
            continue
        return text[start.start() : end]
    ignored = "; arrays of integers only are ignored, as they may be citations" if citations else ""
    raise NotDocument(f"expected an object or an array of JSON in the text, found none{ignored}")


def _unreadable(line: int, error: Exception) -> BrokenDocument:
    """Return the error of a text that begins like JSON in a line, and is not JSON."""
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return BrokenDocument(f"the first JSON in the text can't be read: it begins in line {line}: {reason}")


def _first_lines(text: str) -> str:
    found: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        begin = line.lstrip()
        try:
            value = parse(line) if begin[:1] in {"{", "["} else None
        except NotJson as error:
            if _JSON_START.match(begin):
                raise _unreadable(number, error) from None
            value = None
        if value is not None:
            found.append(line)
        elif found:
            break
    if not found:
        raise NotDocument("expected lines of JSON in the text, found none with an object or an array")
    return "\n".join(found)


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is not a JSON value")


class _Attempts:
    """Attempts to read a value of one format at different places of a text, with a limit of their effort.

    Attributes:
        error: reason why the first place has no value; "" if nothing looked like one.
    """

    def __init__(self, form: Format, searcher: Searcher | None) -> None:
        self.error = ""
        self._form = form
        self._searcher = searcher
        self._characters = 0
        self._starts = 0

    def spend(self, characters: int) -> None:
        """Count an attempt. Raises NotDocument after too many, SearchFailed if the deadline is over."""
        if self._searcher:
            self._searcher.check_time()
        self._characters += characters
        self._starts += 1
        if self._characters > LONGEST or self._starts > MOST_STARTS:
            raise NotDocument(
                f"found no {FORMAT_NAMES[self._form]} in the {LONGEST:,} characters that were tried; put it into a "
                "fenced block, and use `extract: fenced`"
            )

    def fail(self, line: int, error: object) -> None:
        """Keep the reason of the first attempt."""
        self.error = self.error or f"{error}, counted from line {line} of the text"

    def has_members(self, part: str, line: int) -> bool:
        """Return True if a part is a document with members or items."""
        self.spend(len(part))
        try:
            value = parse_document(part, self._form)
        except NotDocument as error:
            self.fail(line, error)
            return False
        return isinstance(value, (dict, list)) and bool(value)


# A key has no spaces: `Here is the file:` is prose, although it is valid YAML, too.
_YAML_ITEM = re.compile(r"( *)-(?: |$)")
_YAML_KEY = re.compile(r"""( *)(?:[\w./@$-]+|"[^"]*"|'[^']*'):(?:\s|$)""")
_YAML_NEXT_KEY = re.compile(r" *[^\s#-].*?:(?: |$)")  # directly after another line of a mapping
_YAML_FLOW = re.compile(r"( *)[{\[]")
_YAML_REST = re.compile(r" *(?:#|[}\]])")


def _first_yaml(text: str, attempts: _Attempts) -> str | None:
    """Return the first run of lines that is a mapping or a list; a run ends before a line that can't belong to it."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        begin = next((form for form in (_YAML_ITEM, _YAML_KEY, _YAML_FLOW) if form.match(lines[at])), None)
        if begin is None:
            at += 1
            continue
        indent = len(lines[at]) - len(lines[at].lstrip(" "))
        siblings = (_YAML_KEY, _YAML_ITEM, _YAML_NEXT_KEY) if begin is _YAML_KEY else (begin,)
        end = at + 1
        while end < len(lines):
            line = lines[end]
            forms = (*siblings[: 3 if lines[end - 1].strip() else 2], _YAML_REST)
            sibling = line.startswith(" " * indent) and any(form.match(line) for form in forms)
            if line.strip() and not line.startswith(" " * (indent + 1)) and not sibling:
                break
            end += 1
        part = "\n".join(line[indent:] for line in lines[at:end])
        if attempts.has_members(part, at + 1):
            return part
        at = end
    return None


_TOML_KEY = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_TOML_LINE = re.compile(rf"\s*(?:\[\[?[^\[\]]+\]\]?\s*(?:\#.*)?$|{_TOML_KEY}(?:\s*\.\s*{_TOML_KEY})*\s*=\s*\S)")
_ERROR_LINE = re.compile(r"\(at line (\d+),")


def _first_toml(text: str, attempts: _Attempts) -> str | None:
    """Return the first run of lines with keys; it ends before a line that is not valid and has no key."""
    import tomllib

    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if not _TOML_LINE.match(lines[at]):
            at += 1
            continue
        end, error_at = len(lines), 0
        while at < end:
            part = "\n".join(lines[at:end])
            attempts.spend(len(part))
            try:
                found = tomllib.loads(part)
            except ValueError as error:
                place = _ERROR_LINE.search(str(error))
                error_at = at + int(place[1]) - 1 if place else end
                if error_at >= end or error_at == at or _TOML_LINE.match(lines[error_at]):
                    attempts.fail(at + 1, error)
                    break
                end = error_at
            else:
                if _has_leaf(found):
                    return part
                error_at = end - 1
                break
        at = max(at, error_at) + 1
    return None


def _has_leaf(value: object) -> bool:
    """Return False for tables without a key: `[docs]` alone is a word in brackets."""
    return any(map(_has_leaf, value.values())) if isinstance(value, dict) else True


_XML_START = re.compile(r"<(?:\?xml\s|!DOCTYPE\s|[A-Za-z_])")


def _first_xml(text: str, attempts: _Attempts) -> str | None:
    """Return the first element that is complete, with its declaration."""
    from xml.parsers import expat

    for start in _XML_START.finditer(text):
        data = text[start.start() :].encode("utf-8", "surrogatepass")
        attempts.spend(len(data))
        parser = expat.ParserCreate("utf-8")
        depth, complete = 0, False

        def begin(*_: object) -> None:
            nonlocal depth
            depth += 1

        def end(_: str) -> None:
            nonlocal depth, complete
            depth -= 1
            complete = complete or depth == 0

        parser.StartElementHandler, parser.EndElementHandler = begin, end
        parser.EntityDeclHandler = _refuse_entity
        try:
            parser.Parse(data, True)  # noqa: FBT003
        except expat.ExpatError as error:
            if complete:
                return data[: parser.ErrorByteIndex].decode("utf-8", "surrogatepass")
            attempts.fail(text.count("\n", 0, start.start()) + 1, error)
            continue
        return data.decode("utf-8", "surrogatepass")
    return None


def _refuse_entity(*_: object) -> None:
    raise NotDocument("entities are disabled")


_FIRST = {"yaml": _first_yaml, "toml": _first_toml, "xml": _first_xml}
_VALUES = {"yaml": "a mapping or a list of YAML", "toml": "keys of TOML", "xml": "an element of XML"}
