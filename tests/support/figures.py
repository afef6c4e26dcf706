"""Figures of the source: sizes of modules and folders, functions called once, import cycles."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from tests.support.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PACKAGES = (
    ROOT / "extensions" / "ext_host",
    ROOT / "extensions" / "ext_http",
    ROOT / "extensions" / "ext_kubernetes",
    ROOT / "extensions" / "ext_sdk",
    ROOT / "extensions" / "ext_shell",
    ROOT / "extensions" / "gevals_extensions",
    ROOT / "recorder" / "ext_recorder",
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """A source file.

    Args:
        path: the file.
        root: the folder that Python imports it from.
    """

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.name = path.relative_to(root).as_posix()
        self.source = path.read_text()
        parts = path.relative_to(root).with_suffix("").parts
        self.dotted = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        self._package = self.dotted if parts[-1] == "__init__" else ".".join(parts[:-1])

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Return all nodes of its syntax tree."""
        return list(ast.walk(ast.parse(self.source)))

    @property
    def line_count(self) -> int:
        """Return the number of lines."""
        return len(self.source.splitlines())

    @property
    def functions(self) -> list[Function]:
        """Return all functions and methods."""
        return [node for node in self.nodes if isinstance(node, Function)]

    def called_once(self) -> Iterator[str]:
        """Yield the names of private functions that the module calls in one place, and does not use otherwise."""
        uses: Counter[str] = Counter()
        calls: Counter[str] = Counter()
        for node in self.nodes:
            if isinstance(node, ast.Name | ast.Attribute):
                uses[_name(node)] += 1
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                calls[_name(node.func)] += 1
        private = {node.name for node in self.functions if node.name.startswith("_") and not node.name.startswith("__")}
        return (f"{self.name}: {name}" for name in sorted(private) if uses[name] == calls[name] == 1)

    def imports(self, modules: Mapping[str, Module]) -> set[str]:
        """Return the modules that this one imports, in functions and for types only, too."""
        imported = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                package = self._package.split(".")[: -(node.level - 1) or None] if node.level else []
                origin = ".".join([*package, *filter(None, [node.module])])
                submodules = {f"{origin}.{alias.name}" for alias in node.names}
                imported |= submodules if submodules <= modules.keys() else submodules | {origin}
        return imported & modules.keys() - {self.dotted}


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def modules() -> dict[str, Module]:
    """Return all modules by their dotted names."""
    found = (Module(path, package.parent) for package in PACKAGES for path in sorted(package.rglob("*.py")))
    return {module.dotted: module for module in found}


def import_cycle(modules: Mapping[str, Module]) -> list[str]:
    """Return the modules that are left when those without imports among the rest are removed again and again."""
    graph = {name: module.imports(modules) for name, module in modules.items()}
    while leaves := {name for name, imported in graph.items() if not imported & graph.keys()}:
        graph = {name: imported for name, imported in graph.items() if name not in leaves}
    return sorted(graph)
