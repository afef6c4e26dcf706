"""Which cluster, as whom: where a kubeconfig comes from, and what it says.

In this order: `kubeconfig` or `serviceAccount` of the configuration, KUBECONFIG of the task, KUBECONFIG of the
extension, the service account of the pod that the extension runs in, `~/.kube/config`. What is read here is for names
and for people; the credentials are loaded by the `kubernetes` package, in `client`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ext_kubernetes.config import config_of
from ext_kubernetes.early_check import MOST_BYTES, may_have
from ext_sdk.core.text import suggest

from .errors import NoConfiguration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import ext_sdk


Entry = dict[str, object]  # one of the file's clusters, contexts or users, without its name
IN_CLUSTER = "in-cluster"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
KINDS = ("clusters", "contexts", "users")


class Source:
    """Where the settings of a connection are: hashable, and another one when a file has changed.

    Attributes:
        files: paths of kubeconfig files, the first one wins; none for the service account of a pod.
        context: "" for the current one.
        origin: where the files were named, for people.
        account: folder of a pod's service account, where there are no files.
        stamp: (time, size) of each file.
    """

    __slots__ = ("account", "context", "files", "origin", "stamp")

    def __init__(self, files: tuple[str, ...], context: str, origin: str, account: Path = ACCOUNT) -> None:
        self.account = account
        self.files = files
        self.context = context
        self.origin = origin
        self.stamp = stamps(files)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.files, self.context, self.stamp, self.account)

    @property
    def in_cluster(self) -> bool:
        """Whether it is the service account of a pod."""
        return not self.files

    def __str__(self) -> str:
        return os.pathsep.join(self.files) or f"the service account in {self.account}"


class Kubeconfig:
    """What the files say, merged as kubectl does: the first to name something wins.

    Attributes:
        current: name of the current context; "" without one.
        clusters, contexts, users: the entries by name, in the order of the files.
        where: the files, for people.
    """

    __slots__ = ("clusters", "contexts", "current", "users", "where")

    def __init__(self, current: str, entries: Mapping[str, dict[str, Entry]], where: str) -> None:
        self.current = current
        self.where = where
        self.clusters = entries["clusters"]
        self.contexts = entries["contexts"]
        self.users = entries["users"]

    def context(self, name: str = "") -> Entry:
        """A context by name, or the current one.

        Raises:
            NoConfiguration: there is none of that name, or no current one.
        """
        wanted = name or self.current
        if not wanted:
            raise NoConfiguration(
                "no current context",
                error=f"the kubeconfig {self.where} has no current-context; set `context` in the extension's "
                f"configuration: {suggest('', self.contexts)}",
            )
        if wanted not in self.contexts:
            raise NoConfiguration(
                f"no context {wanted!r}",
                error=f"the kubeconfig {self.where} has no context {wanted!r}; {suggest(wanted, self.contexts)}",
            )
        return self.contexts[wanted]

    def usable(self, name: str = "") -> Entry:
        """A context by name, or the current one, whose server is known, and the user that it names.

        Raises:
            NoConfiguration: there is none, or that is not so.
        """
        found = self.context(name)
        for kind, known in (("cluster", self.clusters), ("user", self.users)):
            wanted = found.get(kind)
            if isinstance(wanted, str) and wanted and wanted not in known:
                raise NoConfiguration(
                    f"no {kind} {wanted!r}",
                    error=f"the kubeconfig {self.where} has no {kind} {wanted!r}, which its context "
                    f"{name or self.current!r} names; {suggest(wanted, known)}",
                )
        cluster = found.get("cluster")
        if isinstance(cluster, str) and cluster and not self.clusters[cluster].get("server"):
            raise NoConfiguration(
                f"no server of cluster {cluster!r}",
                error=f"the kubeconfig {self.where} has no `server`, an address, in its cluster {cluster!r}",
            )
        return found


def source_of(context: ext_sdk.Context) -> Source:
    """Where the settings for a call come from.

    Raises:
        NoConfiguration: nowhere.
    """
    config = config_of(context)
    if config.service_account:
        return Source((), "", "config.serviceAccount", Path(config.service_account).expanduser())
    for text, origin, base in (
        (config.kubeconfig, "config.kubeconfig", Path.cwd()),
        (context.env.get("KUBECONFIG", ""), "KUBECONFIG of the task", context.workdir),
        (os.environ.get("KUBECONFIG", ""), "KUBECONFIG", Path.cwd()),
    ):
        if files := _files(text, base):
            return _existing(Source(files, config.context, origin))
    if "KUBERNETES_SERVICE_HOST" in os.environ and (ACCOUNT / "token").is_file():
        return Source((), "", IN_CLUSTER)
    return _existing(Source((str(Path("~/.kube/config").expanduser()),), config.context, "the default"))


def check_explicit(kubeconfig: str, context: str) -> None:
    """Check a kubeconfig that the configuration names.

    Raises:
        ValueError: none of the files exists, one can't be read, or none has the context.
    """
    source = Source(_files(kubeconfig, Path.cwd()), context, "config.kubeconfig")
    try:
        existing = [file for file, stamp in zip(source.files, _existing(source).stamp, strict=True) if stamp]
        for file in existing:
            _readable(file)
        if not may_have(context, existing):
            read(source).context(context)
    except NoConfiguration as problem:
        raise ValueError(f"kubeconfig: {problem.error}") from problem


def _files(text: str, base: Path) -> tuple[str, ...]:
    return tuple(str(base / Path(one).expanduser()) for one in text.split(os.pathsep) if one)


def _readable(file: str) -> None:
    try:
        with Path(file).open("rb"):
            pass
    except OSError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: str, error: OSError) -> NoConfiguration:
    return NoConfiguration(
        "the kubeconfig can't be read", error=f"the kubeconfig {file} can't be read: {error.strerror}"
    )


def read(source: Source) -> Kubeconfig:
    """What the files of a source say.

    Raises:
        NoConfiguration: a file can't be read, or is no kubeconfig. The text has nothing of what is in it.
    """
    entries: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
    current = ""
    for file in source.files:
        content = _content(file)
        if content is None:
            continue
        told = content.get("current-context")
        current = current or (told if isinstance(told, str) else "")
        for kind in KINDS:
            for name, entry in _named(content.get(kind), kind, file):
                entries[kind].setdefault(name, entry)
    return Kubeconfig(current, entries, str(source))


def _existing(source: Source) -> Source:
    if any(source.stamp):
        return source
    raise NoConfiguration(
        "no kubeconfig",
        error=f"there is no kubeconfig at {source} ({source.origin}). Set `kubeconfig` in the extension's "
        "configuration, or KUBECONFIG",
    )


def stamps(files: Sequence[str]) -> tuple[tuple[int, int] | None, ...]:
    """(time, size) of each file, None for one that is not there: others where a file was written anew."""
    return tuple(_stamp(file) for file in files)


def _stamp(file: str) -> tuple[int, int] | None:
    try:
        status = Path(file).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _content(file: str) -> Mapping[str, object] | None:
    """The members of one file; None where there is no such file, which is fine beside others."""
    from ext_kubernetes.objects.yaml_loader import load_yaml

    try:
        with Path(file).open("rb") as stream:
            data = stream.read(MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(file, error) from error
    try:
        content = load_yaml(data.decode())
    except ValueError as error:
        raise NoConfiguration(
            "the kubeconfig is broken", error=f"the kubeconfig {file} is no YAML: {_place(error)}"
        ) from None  # what YAML libraries say quotes the file, and so may have credentials in it
    if not isinstance(content, dict):
        raise NoConfiguration(
            "the kubeconfig is broken",
            error=f"expected a kubeconfig in {file}, found {_kind(content)}",
        )
    return content


def _named(value: object, kind: str, file: str) -> list[tuple[str, Entry]]:
    """The entries of a list such as `contexts`, by name."""
    found = []
    for item in value if isinstance(value, list) else ():
        entry = item.get(kind.removesuffix("s")) if isinstance(item, dict) else None
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or not isinstance(entry, dict):
            raise NoConfiguration(
                "the kubeconfig is broken",
                error=f"the kubeconfig {file} has an entry of `{kind}` without `name` or `{kind.removesuffix('s')}`",
            )
        found.append((name, entry))
    return found


def _place(error: Exception) -> str:
    mark = getattr(error.__cause__, "problem_mark", None)
    return f"line {mark.line + 1}" if mark is not None else "its text is not UTF-8, or not closed"


def _kind(value: object) -> str:
    return {str: "a text", list: "a list", type(None): "nothing"}.get(
        type(value), f"a value of type {type(value).__name__}"
    )
