"""Generate files from the code: `python -m docs.generate`; `--check` only checks that they are up to date.

- prepared files of each extension, from which it responds to `initialize`: the manifest, and the schema of the
  configuration;
- `docs/reference/ext-*.md`, from the classes of arguments and from the command line of the recorder;
- `docs/reference/task.schema.json`, the schema of task and eval files with the operations of the extensions;
- `docs/reference/http-apis.md`, from the recorder's known APIs;
- in pages, code blocks that name a file (```` ```python file=docs/examples/greeter.py ````), and tables between
  `<!-- names: ext-shell -->` and `<!-- /names -->`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ext_host import schema as task_schema
from ext_sdk.extension import Extension
from ext_sdk.prepare import prepared

from . import conformance_tables, extension_page, recorder_page, source_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
EXTENSIONS = {
    "ext-http": "ext_http.extension:extension",
    "ext-kubernetes": "ext_kubernetes.extension:extension",
    "ext-shell": "ext_shell.extension:extension",
}
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


def load(target: str) -> Extension:
    """Return the extension that `package.module:name` names."""
    module, _, name = target.partition(":")
    extension: object = getattr(import_module(module), name)
    if not isinstance(extension, Extension):
        raise TypeError(f"{target} is not an Extension")
    return extension


def generated() -> Iterator[tuple[Path, str]]:
    """Yield every generated file with its content."""
    tables = conformance_tables.tables()
    manifests = []
    for program, target in EXTENSIONS.items():
        extension = load(target)
        yield from ((path, content.decode()) for path, content in prepared(target).items())
        manifests.append(extension.manifest())
        yield REFERENCE / f"{program}.md", extension_page.page(program, extension)
        tables[f"names: {program}"] = extension_page.names(extension, f"reference/{program}.md")
    extensions = {each.name: each for each in map(task_schema.Extension.of_manifest, manifests)}
    yield REFERENCE / "task.schema.json", task_schema.text_of(task_schema.file_schema(extensions))
    yield REFERENCE / "ext-recorder.md", recorder_page.page()
    yield REFERENCE / "http-apis.md", recorder_page.apis_page()
    for path in PAGES:
        yield path, source_blocks.with_tables(source_blocks.filled(path.read_text(), ROOT), tables)


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` list those that are out of date. Return 1 if `--check` finds any."""
    check = arguments == ["--check"]
    if arguments and not check:
        sys.exit(f"expected --check or nothing, found {' '.join(arguments)}")
    stale = [(path, text) for path, text in generated() if not path.is_file() or path.read_text() != text]
    for path, text in stale:
        print(f"{path.relative_to(ROOT)}: {'out of date; run `make docs`' if check else 'written'}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
