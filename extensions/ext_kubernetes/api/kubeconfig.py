"""Kubeconfig: its source, its content, and the impersonation headers of its users.

The source is, in this order: `kubeconfig` or `serviceAccount` of the configuration, KUBECONFIG of the task, KUBECONFIG
of the extension, the service account of the extension's pod, `~/.kube/config`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ext_kubernetes.early_check import MOST_BYTES, may_have
from ext_sdk.core.text import suggest

from .errors import NoConfiguration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .package_patches import Headers


Entry = dict[str, object]  # a cluster, context or user of the file, without its name
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
KINDS = ("clusters", "contexts", "users")


class Source(NamedTuple):
    """Location of the settings of a connection; different after a file has changed.

    Attributes:
        files: paths of kubeconfig files; empty for the service account of a pod.
        mtimes: (time, size) of each file; None for a missing one.
        context: "" for the current one.
        account: folder of a pod's service account, used without files.
        user: user to act as; "" for the user of the context.
        groups: groups of `user`; empty for those that the server adds.
        of_step: an argument of the operation names the kubeconfig or the context.
        in_workdir: the file is in the workdir, where an agent may write.
    """

    files: tuple[str, ...] = ()
    mtimes: tuple[tuple[int, int] | None, ...] = ()
    context: str = ""
    account: Path = ACCOUNT
    user: str = ""
    groups: tuple[str, ...] = ()
    of_step: bool = False
    in_workdir: bool = False

    @property
    def in_cluster(self) -> bool:
        """Return True for the service account of a pod."""
        return not self.files

    def __str__(self) -> str:
        return os.pathsep.join(self.files) or f"the service account in {self.account}"


class Kubeconfig(NamedTuple):
    """Content of the files, merged as by kubectl: the first file that defines an entry wins.

    Attributes:
        current: name of the current context; "" without one.
        clusters, contexts, users: entries by name, in the order of the files.
        files: the file of each entry, by kind and name.
        where: all files, for messages.
    """

    current: str
    clusters: Mapping[str, Entry]
    contexts: Mapping[str, Entry]
    users: Mapping[str, Entry]
    files: Mapping[tuple[str, str], str]
    where: str

    def context(self, name: str = "") -> Entry:
        """Return a context by name, or the current one.

        Raises:
            NoConfiguration: the context, or the current one, does not exist.
        """
        chosen = name or self.current
        if not chosen:
            raise NoConfiguration(
                "no current context",
                error=f"the kubeconfig {self.where} has no current-context; set `context` in the extension's "
                f"configuration: {suggest('', self.contexts)}",
            )
        if chosen not in self.contexts:
            raise NoConfiguration(
                f"no context {chosen!r}",
                error=f"the kubeconfig {self.where} has no context {chosen!r}; {suggest(chosen, self.contexts)}",
            )
        return self.contexts[chosen]

    def usable(self, name: str = "") -> Entry:
        """Return a context by name, or the current one, after checks of its cluster and user.

        Raises:
            NoConfiguration: the context, its user, its cluster or the server of that does not exist.
        """
        context = self.context(name)
        for kind, known in (("cluster", self.clusters), ("user", self.users)):
            reference = context.get(kind)
            if isinstance(reference, str) and reference and reference not in known:
                raise NoConfiguration(
                    f"no {kind} {reference!r}",
                    error=f"the kubeconfig {self.where} has no {kind} {reference!r}, which its context "
                    f"{name or self.current!r} names; {suggest(reference, known)}",
                )
        cluster = context.get("cluster")
        if isinstance(cluster, str) and cluster and not self.clusters[cluster].get("server"):
            raise NoConfiguration(
                f"no server of cluster {cluster!r}",
                error=f"the kubeconfig {self.where} has no `server`, an address, in its cluster {cluster!r}",
            )
        return context


def find_source(kubeconfig: str, service_account: str, context: str, env: Mapping[str, str], workdir: Path) -> Source:
    """Return the source of the settings for a call.

    Args:
        kubeconfig, service_account, context: of the configuration.
        env: environment of the task.
        workdir: of the task.

    Raises:
        NoConfiguration: the kubeconfig is missing.
    """
    if service_account:
        return Source(account=Path(service_account).expanduser())
    for text, origin, base in (
        (kubeconfig, "config.kubeconfig", None),
        (env.get("KUBECONFIG"), "KUBECONFIG of the task", workdir),
        (os.environ.get("KUBECONFIG"), "KUBECONFIG", None),
    ):
        if text and text.strip(os.pathsep):
            return _existing(text, base, context, origin)
    if "KUBERNETES_SERVICE_HOST" in os.environ and (ACCOUNT / "token").is_file():
        return Source()
    return _existing("~/.kube/config", None, context, "the default")


def source_of_step(path: str, context: str, workdir: Path) -> Source:
    """Return the source that arguments of an operation name.

    Args:
        path: in the workdir, or absolute.

    Raises:
        NoConfiguration: the file does not exist.
        ext_sdk.OperationFailed: a relative path leads out of the workdir.
    """
    from ext_sdk.files import PathEscapes, Workdir, os_errors

    given, files = Path(path).expanduser(), Workdir(workdir)
    try:
        with os_errors("read the kubeconfig", path):
            file = str(files.path(str(given)))
    except PathEscapes:
        if not given.is_absolute():
            raise
        return _existing(str(given), None, context, "`kubeconfig` of the step")._replace(of_step=True)
    return Source((file,), mtimes_of([file]), context, of_step=True, in_workdir=True)


def check_explicit(kubeconfig: str, context: str) -> None:
    """Check a kubeconfig that the configuration names.

    Raises:
        ValueError: none of the files exists, one can't be read, or none has the context.
    """
    try:
        source = _existing(kubeconfig, None, context, "config.kubeconfig")
        existing = [file for file, mtime in zip(source.files, source.mtimes, strict=True) if mtime]
        for file in existing:
            try:
                with Path(file).open("rb"):
                    pass
            except OSError as error:
                raise _unreadable(file, error) from error
        if not may_have(context, existing):
            read(source).context(context)
    except NoConfiguration as problem:
        raise ValueError(f"kubeconfig: {problem.error}") from problem


def _unreadable(file: str, error: OSError) -> NoConfiguration:
    return NoConfiguration(
        "the kubeconfig can't be read", error=f"the kubeconfig {file} can't be read: {error.strerror}"
    )


def _existing(text: str, base: Path | None, context: str, origin: str) -> Source:
    """Return the source of a list of files, as KUBECONFIG has it.

    Args:
        base: folder of relative paths; None for the current one.
        origin: setting that names the files.

    Raises:
        NoConfiguration: none of the files exists.
    """
    base = base or Path.cwd()
    files = [str(base / Path(file).expanduser()) for file in text.split(os.pathsep) if file]
    source = Source(tuple(files), mtimes_of(files), context)
    if any(source.mtimes):
        return source
    raise NoConfiguration(
        "no kubeconfig",
        error=f"no kubeconfig at {source} ({origin}). Set `kubeconfig` in the extension's configuration, or KUBECONFIG",
    )


def public_url(url: str) -> str:
    """Return a URL for messages: without user, password and query, which may be or hold credentials."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        return "an invalid address"


def mtimes_of(files: Sequence[str]) -> tuple[tuple[int, int] | None, ...]:
    """Return (time, size) of each file, None for a missing one; they differ after a file is written again."""
    mtimes: list[tuple[int, int] | None] = []
    for file in files:
        try:
            status = Path(file).stat()
        except OSError:
            mtimes.append(None)
        else:
            mtimes.append((status.st_mtime_ns, status.st_size))
    return tuple(mtimes)


def read(source: Source) -> Kubeconfig:
    """Read the files of a source.

    Raises:
        NoConfiguration: a file can't be read, or is not a kubeconfig. The text quotes nothing of the file.
    """
    entries: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
    files: dict[tuple[str, str], str] = {}
    current = ""
    for file in source.files:
        content = _read_file(file)
        first = content.get("current-context")
        current = current or (first if isinstance(first, str) else "")
        for kind in KINDS:
            member, listed = kind.removesuffix("s"), content.get(kind)
            for item in listed if isinstance(listed, list) else ():
                entry, name = (item.get(member), item.get("name")) if isinstance(item, dict) else (None, None)
                if not isinstance(name, str) or not isinstance(entry, dict):
                    raise NoConfiguration(
                        "the kubeconfig is invalid",
                        error=f"the kubeconfig {file} has an entry of `{kind}` without `name` or `{member}`",
                    )
                if name not in entries[kind]:
                    entries[kind][name], files[kind, name] = entry, file
    if source.in_workdir:
        _check_contained(entries, source)
    return Kubeconfig(current, entries["clusters"], entries["contexts"], entries["users"], files, str(source))


# Members that run programs, or whose file is sent to the server that the kubeconfig names.
NOT_CONTAINED = ("exec", "auth-provider", "tokenFile", "client-certificate", "client-key", "certificate-authority")


def _check_contained(entries: Mapping[str, Mapping[str, Entry]], source: Source) -> None:
    """Raise NoConfiguration if a kubeconfig that an agent may have written refers to programs or files."""
    for kind in ("users", "clusters"):
        for name, entry in entries[kind].items():
            for member in NOT_CONTAINED:
                if member in entry:
                    raise NoConfiguration(
                        "the kubeconfig can't be used",
                        error=f"the kubeconfig {source} is in the workdir, where agents can write, so it must contain "
                        f"its credentials: found `{member}` of the {kind.removesuffix('s')} {name!r}. Replace files by "
                        "`kubectl config view --raw --flatten`, or use a kubeconfig outside of the workdir",
                    )


def _read_file(file: str) -> Mapping[str, object]:
    """Return the members of a file; none if it does not exist, which is allowed if there are others."""
    from ext_kubernetes.objects.yaml_loader import load_yaml

    try:
        with Path(file).open("rb") as stream:
            data = stream.read(MOST_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(file, error) from error
    try:
        content = load_yaml(data.decode())
    except ValueError as error:
        mark = getattr(error.__cause__, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark is not None else "its text is not UTF-8, or not closed"
        raise NoConfiguration(
            "the kubeconfig is invalid", error=f"the kubeconfig {file} is not valid YAML: {place}"
        ) from None  # messages of YAML libraries quote the file, which may hold credentials
    if not isinstance(content, dict):
        names = {str: "a string", list: "a list", type(None): "nothing"}
        found = names.get(type(content), f"a value of type {type(content).__name__}")
        raise NoConfiguration("the kubeconfig is invalid", error=f"expected a kubeconfig in {file}, found {found}")
    return content


# --- Impersonation: `as`, `as-groups`, `as-uid` and `as-user-extra` of a user -----------------------------------------

USER, GROUPS, UID, EXTRA = "as", "as-groups", "as-uid", "as-user-extra"
IMPERSONATE = "Impersonate-"
LEGAL_CHARACTERS = "!#$&'*+-.^_`|~"  # in the name of a header, besides letters and digits; `%` escapes all others


def impersonation_headers(entry: Mapping[str, object], user: str) -> Headers:
    """Return the headers that make a server treat requests as another user's; a name may occur several times.

    Args:
        entry: of the user in the kubeconfig.
        user: its name, for errors.

    Raises:
        NoConfiguration: the members are not valid for kubectl; nothing may be sent as the real user then.
    """
    name, uid = (_text(entry.get(key), key, user) for key in (USER, UID))
    groups = _texts(entry.get(GROUPS), GROUPS, user)
    extra = entry.get(EXTRA) or {}
    if not isinstance(extra, dict):
        raise _invalid(EXTRA, user, "expected lists of strings by name")
    if (uid or groups or extra) and not name:
        raise _invalid(USER, user, f"expected a user name, because {GROUPS}, {UID} or {EXTRA} is set")
    headers = [(f"{IMPERSONATE}User", name)] if name else []
    headers += [(f"{IMPERSONATE}Uid", uid)] if uid else []
    headers += [(f"{IMPERSONATE}Group", group) for group in groups]
    if extra:
        from urllib.parse import quote

        for key, values in extra.items():
            header = f"{IMPERSONATE}Extra-{quote(_text(key, EXTRA, user), safe=LEGAL_CHARACTERS)}"
            headers += [(header, value) for value in _texts(values, f"{EXTRA}.{key}", user)]
    return tuple(headers)


def _texts(value: object, field: str, user: str) -> list[str]:
    if not isinstance(value, list | None):
        raise _invalid(field, user, "expected a list of strings")
    return [_text(item, field, user) for item in value or ()]


def _text(value: object, field: str, user: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or not value.isprintable():
        raise _invalid(field, user, "expected a string of one line")
    return value


def _invalid(field: str, user: str, problem: str) -> NoConfiguration:
    return NoConfiguration(
        "the kubeconfig can't be used",
        error=f"the user {user!r} of the kubeconfig can't be impersonated: {field}: {problem}; no request was sent",
    )
