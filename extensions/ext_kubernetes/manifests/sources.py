"""Where the objects of `apply`, `create`, `replace` and `delete` come from.

Files of the workdir, the arguments, a web server, or what kustomize makes of a directory.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.objects.yaml_loader import UNREPLACED, Json, NoObject, NotYaml, Object, flat, objects_of
from ext_sdk.files import Workdir, os_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


MOST_BYTES = 64 * 1024 * 1024  # of one file
SUFFIXES = (".yaml", ".yml", ".json")
MOST_DIRECTORIES = 1000
MOST_TOLD = 2000  # characters of what kustomize says that are repeated
KUSTOMIZE = {"kubectl": "kustomize", "kustomize": "build"}  # programs, the first that is there, and their commands
KUSTOMIZE_ADVICE = "it builds kustomizations, and so does kustomize: install one of them"

File = Annotated[
    str | list[str],
    Meta(description="File or directory in the workdir, or several: YAML or JSON, any number of documents, Lists"),
]

Recursive = Annotated[bool, Meta(description="With a directory as `file`: directories within it too")]

Inline = Annotated[
    str | dict[str, Json] | list[dict[str, Json]] | UnsetType,
    ext_sdk.Verbatim,
    Meta(description="The manifest itself: YAML text, an object, or a list of them; ${NAME.key} is not replaced"),
]

Url = Annotated[str, Meta(description="Address of a manifest: http or https, no user or password; at most 64 MiB")]

Kustomize = Annotated[
    str, Meta(description="Directory in the workdir with a kustomization; needs kubectl or kustomize")
]


class SourceArgs(ext_sdk.Args):
    """Manifests: one of these."""

    file: File = ""
    recursive: Recursive = False
    manifest: Inline = UNSET
    url: Url = ""
    kustomize: Kustomize = ""


class Sources(Protocol):
    """Arguments with these fields; a class of arguments has one base."""

    @property
    def file(self) -> str | list[str]:
        """See SourceArgs."""

    @property
    def recursive(self) -> bool:
        """See SourceArgs."""

    @property
    def manifest(self) -> str | Object | list[Object] | UnsetType:
        """See SourceArgs."""

    @property
    def url(self) -> str:
        """See SourceArgs."""

    @property
    def kustomize(self) -> str:
        """See SourceArgs."""


class Manifest(NamedTuple):
    """An object and where it was: `web.yaml, line 12`."""

    object: Object
    place: str


def manifests_of(args: Sources, context: ext_sdk.Context) -> list[Manifest]:
    """The objects that arguments name.

    Raises:
        ext_sdk.InvalidArgs: no source is given, or several.
        ext_sdk.OperationFailed: a file can't be read, is no YAML, or has something else than objects in it.
    """
    given = [name for name in SOURCES if getattr(args, name) not in ("", UNSET, [])]
    if len(given) != 1:
        raise ext_sdk.InvalidArgs(
            "file", f"expected one of {', '.join(SOURCES)}; found {' and '.join(given) if given else 'none'}"
        )
    try:
        found = [Manifest(*one) for one in SOURCES[given[0]](args, context)]
    except (NotYaml, NoObject) as error:
        unreplaced = UNREPLACED if isinstance(args.manifest, str) and "${" in args.manifest else ""
        raise ext_sdk.OperationFailed("the manifest can't be used", error=f"{error}{unreplaced}") from error
    if not found:
        raise ext_sdk.OperationFailed("the manifest is empty", error=f"{given[0]}: found no object in it")
    return found


def _from_files(args: Sources, context: ext_sdk.Context) -> Iterator[tuple[Object, str]]:
    workdir = Workdir(context.workdir)
    for name in [args.file] if isinstance(args.file, str) else args.file:
        for path in _files(workdir, name, recursive=args.recursive):
            with os_errors("read", path):
                data = workdir.read(path, limit=MOST_BYTES)
            yield from objects_of(_text(data, path), path)


def _files(workdir: Workdir, name: str, *, recursive: bool) -> list[str]:
    """The file, or the manifests of the directory, by name."""
    with os_errors("read", name):
        if not stat.S_ISDIR(workdir.stat(name).st_mode):
            return [name]
        found: list[str] = []
        directories = [name.rstrip("/")]
        for count, directory in enumerate(directories):
            if count > MOST_DIRECTORIES:
                raise ext_sdk.OperationFailed(f"{name!r} has more than {MOST_DIRECTORIES} directories in it")
            for entry in workdir.names(directory):
                path = f"{directory}/{entry}"
                mode = workdir.stat(path, follow=False).st_mode
                if stat.S_ISDIR(mode) and recursive:
                    directories.append(path)
                elif entry.endswith(SUFFIXES) and not stat.S_ISDIR(mode):
                    found.append(path)
    if not found:
        raise ext_sdk.OperationFailed(
            f"no manifest in {name!r}", error=f"{name}: expected files that end in {', '.join(SUFFIXES)}, found none"
        )
    return found


def _from_args(args: Sources, context: ext_sdk.Context) -> Iterator[tuple[Object, str]]:
    del context
    if isinstance(args.manifest, str):
        yield from objects_of(args.manifest, "manifest")
        return
    given = args.manifest if isinstance(args.manifest, list) else [args.manifest]
    for number, one in enumerate(given):
        place = f"manifest[{number}]" if len(given) > 1 else "manifest"
        yield from ((item, place) for item in flat(one, place))


def _from_url(args: Sources, context: ext_sdk.Context) -> Iterator[tuple[Object, str]]:
    from ext_kubernetes.api.download import fetch  # rarely wanted

    data = fetch(args.url, context.deadline, MOST_BYTES)
    place = args.url.partition("?")[0]
    yield from objects_of(_text(data, place), place)


def _from_kustomize(args: Sources, context: ext_sdk.Context) -> Iterator[tuple[Object, str]]:
    """What kustomize makes of a directory; plugins, charts and files outside of it stay forbidden, as by default."""
    from ext_kubernetes.program import run

    with os_errors("read", args.kustomize):
        directory = str(Workdir(context.workdir).path(args.kustomize))
    for program, command in KUSTOMIZE.items():
        try:
            ran = run([program, command, directory], {}, context, KUSTOMIZE_ADVICE, limit=MOST_BYTES)
        except ext_sdk.RequirementNotMet:
            if program == next(reversed(KUSTOMIZE)):
                raise ext_sdk.RequirementNotMet(next(iter(KUSTOMIZE)), KUSTOMIZE_ADVICE) from None
            continue
        if ran.code != 0 or not ran.whole:
            why = f"{ran.how}: {ran.stderr.strip()[-MOST_TOLD:]}" if ran.in_time else "it did not end in time"
            why = why if ran.whole else f"more than {MOST_BYTES:,} bytes"
            raise ext_sdk.OperationFailed(
                "the kustomization can't be built",
                error=f"kustomize: expected {program} {command} {args.kustomize} to give manifests, found {why}",
            )
        yield from objects_of(ran.stdout, f"{args.kustomize}, built")
        return


def _text(data: bytes, place: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotYaml(f"{place}: it is not UTF-8, at byte {error.start}") from error


SOURCES: Mapping[str, Callable[[Sources, ext_sdk.Context], Iterator[tuple[Object, str]]]] = {
    "file": _from_files,
    "manifest": _from_args,
    "url": _from_url,
    "kustomize": _from_kustomize,
}
