"""Sources of the objects of `apply`, `create`, `replace` and `delete`: files, arguments, a URL, or kustomize."""

from __future__ import annotations

import re
import stat
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.config import ClusterArgs
from ext_kubernetes.objects.yaml_loader import UNREPLACED, Json, NotAnObject, NotYaml, Object, flatten, objects_of
from ext_sdk.files import Workdir, os_errors

if TYPE_CHECKING:
    from collections.abc import Iterator


MOST_BYTES = 64 * 1024 * 1024  # of one file
SUFFIXES = (".yaml", ".yml", ".json")
MOST_DIRECTORIES = 1000
MOST_OUTPUT = 2000  # characters of kustomize's output in an error
SOURCES = ("file", "manifest", "url", "kustomize")  # arguments that name a source
KUSTOMIZE = {"kubectl": "kustomize", "kustomize": "build"}  # programs, in the order of preference, and their commands
KUSTOMIZE_ADVICE = "it builds kustomizations, as does kustomize; install one of them"

File = Annotated[
    str | list[str],
    Meta(description="File or directory in the workdir, or several: YAML or JSON, any number of documents, Lists"),
]

Recursive = Annotated[bool, Meta(description="Include subdirectories of a directory in `file`")]

Inline = Annotated[
    str | dict[str, Json] | list[dict[str, Json]] | UnsetType,
    ext_sdk.Verbatim,
    Meta(description="The manifest itself: YAML text, an object, or a list of objects"),
]

Expand = Annotated[
    bool,
    Meta(
        description="Replace ${NAME.key} in the manifest. An unquoted one in YAML text may become a number or "
        "boolean; a value never adds structure"
    ),
]

Url = Annotated[str, Meta(description="URL of a manifest: http or https, without user and password; at most 64 MiB")]

Kustomize = Annotated[
    str, Meta(description="Directory in the workdir with a kustomization; requires kubectl or kustomize")
]


class SourceArgs(ClusterArgs):
    """Source of manifests: one of these arguments."""

    file: File = ""
    recursive: Recursive = False
    manifest: Inline = UNSET
    expand: Expand = False
    url: Url = ""
    kustomize: Kustomize = ""


class Sources(Protocol):
    """Arguments with the fields of SourceArgs; `delete` has them and another base class."""

    @property
    def file(self) -> str | list[str]: ...
    @property
    def recursive(self) -> bool: ...
    @property
    def manifest(self) -> str | Object | list[Object] | UnsetType: ...
    @property
    def expand(self) -> bool: ...
    @property
    def url(self) -> str: ...
    @property
    def kustomize(self) -> str: ...


class Manifest(NamedTuple):
    """An object and its place: `web.yaml, line 12`."""

    object: Object
    place: str


def manifests_of(args: Sources, context: ext_sdk.Context) -> list[Manifest]:
    """Return the objects of the source that arguments name.

    Raises:
        ext_sdk.InvalidArgs: no source is given, or several.
        ext_sdk.OperationFailed: a file can't be read, is not valid YAML, or contains other values than objects.
    """
    given = [name for name in SOURCES if getattr(args, name) not in ("", UNSET, [])]
    if len(given) != 1:
        raise ext_sdk.InvalidArgs(
            "file", f"expected one of {', '.join(SOURCES)}; found {' and '.join(given) if given else 'none'}"
        )
    if args.expand and context.verbatim:
        raise ext_sdk.InvalidArgs("expand", "expected `expand` or `verbatim`, found both")
    if args.expand and given[0] in ("url", "kustomize"):
        raise ext_sdk.InvalidArgs("expand", f"expected `file` or `manifest`, found {given[0]}")
    try:
        manifests = [Manifest(item, place) for item, place in _objects(given[0], args, context)]
    except (NotYaml, NotAnObject) as error:
        unreplaced = UNREPLACED if not args.expand and "${" in str(args.manifest) else ""
        raise ext_sdk.OperationFailed("the manifest can't be used", error=f"{error}{unreplaced}") from error
    if not manifests:
        raise ext_sdk.OperationFailed("the manifest is empty", error=f"{given[0]}: expected an object, found none")
    return manifests


def _objects(source: str, args: Sources, context: ext_sdk.Context) -> Iterator[tuple[Object, str]]:
    """Yield the objects of one of SOURCES, each with its place."""
    if source == "kustomize":
        yield from _from_kustomize(args.kustomize, context)
    elif source == "url":
        from ext_kubernetes.api.download import fetch  # rarely used

        data = fetch(args.url, context.deadline, MOST_BYTES)
        place = args.url.partition("?")[0]
        yield from objects_of(_text(data, place), place)
    elif source == "file":
        workdir = Workdir(context.workdir)
        for name in [args.file] if isinstance(args.file, str) else args.file:
            for path in _files(workdir, name, recursive=args.recursive):
                with os_errors("read", path):
                    data = workdir.read(path, limit=MOST_BYTES)
                yield from objects_in(_text(data, path), path, context, expand=args.expand)
    elif not isinstance(args.manifest, UnsetType):
        yield from objects_in(args.manifest, "manifest", context, expand=args.expand)


def objects_in(
    manifest: str | Object | list[Object], place: str, context: ext_sdk.Context, *, expand: bool
) -> Iterator[tuple[Object, str]]:
    """Yield the objects of a manifest, each with its place.

    Args:
        place: of the manifest, such as the name of its file.
        expand: replace references. In a text, placeholders replace them until it has been parsed, so that a value is
            never read as YAML.

    Raises:
        NotYaml, NotAnObject: the manifest is not valid.
        ext_sdk.InvalidArgs: references without a value.
    """
    if not isinstance(manifest, str):
        manifests = context.expand(manifest, place) if expand else manifest
        listed = manifests if isinstance(manifests, list) else [manifests]
        for number, item in enumerate(listed):
            where = f"{place}[{number}]" if len(listed) > 1 else place
            yield from ((found, where) for found in flatten(item, where))
    elif not expand:
        yield from objects_of(manifest, place)
    else:
        values: dict[str, str] = {}
        prefix = f"v{token_hex(8)}n"

        def insert(value: str) -> str:
            placeholder = f"{prefix}{len(values)}e"
            values[placeholder] = value
            return placeholder

        text = context.expand(manifest, place, insert)
        placeholders = re.compile(f"{prefix}[0-9]+e")
        yield from objects_of(text, place, lambda scalar: placeholders.sub(lambda found: values[found[0]], scalar))


def _files(workdir: Workdir, name: str, *, recursive: bool) -> list[str]:
    """Return the file, or the manifests in the directory, by name."""
    with os_errors("read", name):
        if not stat.S_ISDIR(workdir.stat(name).st_mode):
            return [name]
        paths: list[str] = []
        directories = [name.rstrip("/")]
        for count, directory in enumerate(directories):
            if count > MOST_DIRECTORIES:
                raise ext_sdk.OperationFailed(f"{name!r} contains more than {MOST_DIRECTORIES} directories")
            for entry in workdir.names(directory):
                path = f"{directory}/{entry}"
                mode = workdir.stat(path, follow=False).st_mode
                if stat.S_ISDIR(mode) and recursive:
                    directories.append(path)
                elif entry.endswith(SUFFIXES) and not stat.S_ISDIR(mode):
                    paths.append(path)
    if not paths:
        raise ext_sdk.OperationFailed(
            f"no manifest in {name!r}",
            error=f"{name}: expected files with the suffix {', '.join(SUFFIXES)}, found none",
        )
    return paths


def _from_kustomize(path: str, context: ext_sdk.Context) -> Iterator[tuple[Object, str]]:
    """Yield the objects that kustomize builds; its defaults forbid plugins, charts and files outside the directory."""
    from ext_kubernetes.program import run

    with os_errors("read", path):
        directory = str(Workdir(context.workdir).path(path))
    for program, command in KUSTOMIZE.items():
        try:
            ran = run([program, command, directory], {}, context, KUSTOMIZE_ADVICE, limit=MOST_BYTES)
        except ext_sdk.RequirementNotMet:
            if program == next(reversed(KUSTOMIZE)):
                raise ext_sdk.RequirementNotMet(next(iter(KUSTOMIZE)), KUSTOMIZE_ADVICE) from None
            continue
        if ran.code != 0 or not ran.complete:
            problem = f"{ran.status}: {ran.stderr.strip()[-MOST_OUTPUT:]}" if ran.in_time else "a timeout"
            problem = problem if ran.complete else f"more than {MOST_BYTES:,} bytes"
            raise ext_sdk.OperationFailed(
                "the kustomization can't be built",
                error=f"kustomize: expected {program} {command} {path} to output manifests, found {problem}",
            )
        yield from objects_of(ran.stdout, f"{path}, built")
        return


def _text(data: bytes, place: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotYaml(f"{place}: not valid UTF-8 at byte {error.start}") from error
