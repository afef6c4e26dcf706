"""Templates of task and eval files: `{steps.shell.run.stdout}`, `{random.id}`, `{agent.output}`, `{env.X}`, `${X}`.

The grammar is that of mcpchecker (package template of gen-mcp): each brace belongs to a template, so a text with any
other brace is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    Source = Callable[[str], str]  # returns the value of a field, or raises TemplateError

ENV = "env"


class TemplateError(ValueError):
    """A template that is not valid, or whose value is not known; str() is the reason."""


class Reference(NamedTuple):
    """Part of a template that is replaced: a field of a source."""

    source: str
    field: str
    offset: int


class Template:
    """Text with references to environment variables, and to fields of sources.

    Args:
        text: the template.
        sources: names of the sources that it may use, besides env.

    Attributes:
        parts: texts and references, in their order.

    Raises:
        TemplateError: a brace does not belong to a reference.
    """

    __slots__ = ("parts",)

    def __init__(self, text: str, sources: Collection[str] = ()) -> None:
        self.parts: list[str | Reference] = []
        at = 0
        while at < len(text):
            begin = min((found for mark in "{}" if (found := text.find(mark, at)) >= 0), default=len(text))
            if begin == len(text):
                self.parts.append(text[at:])
                break
            if text[begin] == "}":
                raise TemplateError(f"the brace at character {begin + 1} is not opened; there is no escape for braces")
            end = text.find("}", begin)
            if end < 0:
                raise TemplateError(f"the brace at character {begin + 1} is not closed; there is no escape for braces")
            dollar = begin > at and text[begin - 1] == "$"
            self.parts.append(text[at : begin - dollar])
            self.parts.append(_reference(text[begin + 1 : end], begin, sources, dollar=dollar))
            at = end + 1

    @property
    def references(self) -> list[Reference]:
        """Return the references, in their order."""
        return [part for part in self.parts if isinstance(part, Reference)]

    def fill(self, environ: Mapping[str, str], sources: Mapping[str, Source] | None = None) -> str:
        """Return the text with all references replaced. Raises TemplateError for one that has no value."""
        texts = []
        for part in self.parts:
            if isinstance(part, str):
                texts.append(part)
            elif part.source != ENV:
                texts.append((sources or {})[part.source](part.field))
            elif part.field in environ:
                texts.append(environ[part.field])
            else:
                raise TemplateError(f"the environment variable {part.field} is not set")
        return "".join(texts)


def _reference(name: str, offset: int, sources: Collection[str], *, dollar: bool) -> Reference:
    source, dot, field = name.partition(".")
    if dollar:
        source, field = ENV, name
    elif not dot or source not in {ENV, *sources}:
        known = ", ".join(f"{{{each}.NAME}}" for each in (ENV, *sources))
        raise TemplateError(f"expected {known} or ${{NAME}}, found {{{name}}}")
    if source == ENV and not (field and all(each.isalpha() or each.isdigit() or each == "_" for each in field)):
        raise TemplateError(f"expected the name of an environment variable, found {field!r}")
    if not field:
        raise TemplateError(f"expected the name of a field, found {{{name}}}")
    return Reference(source, field, offset)
