"""Word list for the texts of the project, and the places where a text does not follow it.

Checked are docstrings, comments and other strings of Python files, and the paragraphs of Markdown files. Code is not
checked: neither names nor fenced blocks.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from typing import TYPE_CHECKING, NamedTuple

from tests.support.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Wrong words, as a regular expression, and what to write instead. docs/glossary.md defines the terms of the project.
WORDS = {
    r"told(?! apart)|tells?|telling": "report, state, send, distinguish",
    r"hears?|heard|hearing": "receive, read",
    r"sa(?:y|ys|id) so|(?:is|are|was|were) said|says? (?:what|how|where|whether|it)": "report, state, specify",
    r"spea(?:k|ks|king)|spoken?": "use (a protocol), send",
    r"a (?:last |first )?look|look(?:s|ed|ing)? (?:at|again|once)": "read, poll, check",
    r"judge[sd]?|judging|thinks? of|thought of": "evaluate",
    r"hopeless(?:ly)?|in vain": "failed permanently, without success, timed out",
    r"anew|by now|in the meantime": "again; omit",
    r"a moment|for a while": "briefly, a timestamp",
    r"mend(?:s|ed|ing)?": "fix",
    r"bef(?:all|alls|ell|allen)": "apply to, match",
    r"(?:goes|go|went|going|gone) on": "continue",
    r"puts? out|putting out": "output, print",
    r"h(?:olds?|eld)\b.{0,40}\bagainst": "check against, compare with",
    r"lets? go": "release, free",
    r"let(?:s)? (?:be|stand|through)": "keep, accept",
    r"stands? (?:in|for|by|beside|there|at|behind|before|next)": "is in, represents, replaces, follows",
    r"beside": "next to, in addition to",
    r"com(?:e|es|ing) of (?:it|them|that|this)|what (?:became|comes|came) of": "the result",
    r"(?<!there )(?:is|are|was|were|be) no (?!longer\b|more\b|less\b|op\b)\w+": "is not a …",
    r"where there (?:is|are|was|were)": "if … exists, if … is missing",
    r"(?:is|are|was|were|be) (?:not )?(?:yet )?there(?= already| yet|[.,;:)]|$)": "exists",
    r"somebody|someone|nobody|anybody|whoever": "a user, a client, a process, none",
    r"whatever (?:it|he|they|that|this) \w+|be (?:it|they)": "any",
    r"so (?:long|many|much) (?:as|of|it|time)|as long as it takes": "for N seconds, up to N, while",
    r"spell(?:s|ed|ings?)": "form, encoding; written as",
    r"neutral (?:name|path|spelling)s?|minted": "placeholder; generated",
    r"to be had|be had|of its own accord|by way of": "available; by itself; via",
    r"in words|without a word|a word to": "as text, silently",
    r"die[sd]?|dying|dead|alive(?! connection)": "exit, end, close; running, open",
    r"want(?:s|ed)?": "require, expect",
    r"must not be seen|may be seen": "secret, visible",
    r"second layer|spec 0|the (?:known|real) host": "the real name: gevals 0.0.1, mcpchecker",
    r"(?:cut|thrown|taken|put) away|taken? out|t(?:akes?|aking) .{0,20}\bout of": "remove, extract",
    r"is (?:all|what) (?:that|there|it)\b": "name the subject",
    r"stor(?:y|ies)": "failure report",
    r"(?:a |all |its |their )own ways?|in (?:a|the|its) way": "itself; how",
    r"well-behaved|honest(?:ly)?|patien(?:t|ce)|polite(?:ly)?": "correct; timeout",
    r"lest|save (?:for|that)|but for|for (?:it|they|he|there) (?:is|are|was|has|have|can|may|must)": "because, except",
    r"a (?:hair|thing)s?|things": "the noun",
}
# A docstring does not begin with one of these: a function begins with a verb, a class with a noun.
OPENERS = r"What|Whether|Who(?:ever|se)?|Where|Which|How|When|Why|Those|That|Be|Let|See|All that|As"
# Texts that keep such a word: the end of the path, a part of the text, and the reason.
EXCUSED = (("tests/test_prose.py", "", "samples of its tests"),)

_WORDS = {advice: re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE) for pattern, advice in WORDS.items()}
_ANY = re.compile("|".join(rf"\b(?:{pattern})\b" for pattern in WORDS), re.IGNORECASE)
_OPENER = re.compile(rf"(?:{OPENERS})\b")
_FENCE = re.compile(r"^(?P<fence>```+).*?^(?P=fence)$", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"`[^`\n]*`")


class Text(NamedTuple):
    """A docstring, comment, string or paragraph."""

    line: int
    text: str
    is_docstring: bool = False


class Place(NamedTuple):
    """A text that does not follow the word list."""

    path: str
    line: int
    word: str
    advice: str

    def __str__(self) -> str:
        """Return the place as compilers write it."""
        return f"{self.path}:{self.line}: {self.word!r}: write {self.advice}"


def places(path: Path, source: str | None = None) -> Iterator[Place]:
    """Yield the places of a file, or of another text in the language of that file."""
    name = str(path.relative_to(ROOT))
    source = path.read_text("utf-8") if source is None else source
    for text in _python_texts(source) if path.suffix == ".py" else _paragraphs(source):
        prose = _QUOTED.sub("``", text.text)
        if text.is_docstring and (opener := _OPENER.match(prose)):
            yield Place(name, text.line, opener[0], "a verb in the imperative, or a noun for a class")
        if _ANY.search(prose) and not any(name.endswith(end) and part in text.text for end, part, _ in EXCUSED):
            for advice, pattern in _WORDS.items():
                for match in pattern.finditer(prose):
                    yield Place(name, text.line + prose.count("\n", 0, match.start()), match[0], advice)


def _python_texts(source: str) -> Iterator[Text]:
    docstrings = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(first.value)
    for node in ast.walk(tree):
        # A string without a space is a name, an option or a value, not a text.
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield Text(node.lineno, node.value, node in docstrings)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.string)


def _paragraphs(source: str) -> Iterator[Text]:
    without_code = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), source)
    for number, line in enumerate(without_code.splitlines(), 1):
        if line.strip() and not line.startswith("    "):
            yield Text(number, line)
