"""Tests on a real cluster: `make live`, or pytest with a path in here. A plain `pytest` leaves them out.

They share one cluster. With xdist, the process that deals out the tests has it, and tells the workers where it is.
Each test has a namespace of its own. What would harm others (an API server that is down) is for `control_plane`.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.live.client import Client, Object
    from tests.live.cluster import Cluster
    from tests.live.control_plane import ControlPlane
    from tests.live.kubernetes import Kube

HERE = Path(__file__).parent
SERVICE_ACCOUNT = "tester"
TOKEN_SECONDS = 3600


class Told(TypedDict, total=False):
    """What a process has to know of the shared cluster: one of these.

    Attributes:
        cluster: fields of `Cluster`.
        skip: why there is none to be had.
        fail: why none came up.
    """

    cluster: dict[str, Any]
    skip: str
    fail: str


class TestsFailed(Exception):
    """Ends the shared cluster in such a way that its logs are kept."""

    __test__ = False


class Shared:
    """The cluster of all tests, had when first asked for; asking again gives the same cluster, or the same reason."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._stack = ExitStack()
        self._told: Told = {}

    def tell(self) -> Told:
        """What a worker has to know."""
        if not self._told:
            self._told = self._find()
        return self._told

    def close(self, *, failed: bool) -> None:
        """End the cluster, if it was made for these tests."""
        error = TestsFailed() if failed else None
        self._stack.__exit__(type(error) if error else None, error, None)

    def _find(self) -> Told:
        from tests.live.cluster import FoundCluster, NoCluster

        option = self._config.getoption
        try:
            found = FoundCluster(option("--kubeconfig"), option("--cluster"), reporter(self._config))
            return {"cluster": self._stack.enter_context(found).as_dict()}
        except NoCluster as reason:
            return {"skip": str(reason)}
        except Exception as error:  # noqa: BLE001 - whatever it is, each test tells it
            return {"fail": f"the cluster for the live tests does not come up: {error}"}


SHARED = pytest.StashKey[Shared]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("live")
    group.addoption("--kubeconfig", metavar="FILE", default="", help="run the live tests on this cluster")
    ways = ["kind", "control-plane"]
    group.addoption("--cluster", choices=ways, default="", help="what to run the live tests on; else what there is")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave everything in here out, unless an argument of pytest names it."""
    start = config.invocation_params.dir
    asked_for = any((start / arg.split("::")[0]).resolve().is_relative_to(HERE) for arg in config.args)
    return None if asked_for else True


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SHARED] = Shared(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """Tell an xdist worker where the cluster is."""
    config: pytest.Config = node.config  # type: ignore[attr-defined]  # xdist has no types
    node.workerinput["live"] = config.stash[SHARED].tell()  # type: ignore[attr-defined]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if SHARED in session.config.stash:
        session.config.stash[SHARED].close(failed=bool(session.testsfailed))


def reporter(config: pytest.Config) -> Callable[[str], None]:
    """Shows lines at once, past pytest's capturing of output."""
    capture = config.pluginmanager.getplugin("capturemanager")

    def report(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\nlive: {line}", flush=True)  # noqa: T201

    return report


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Cluster:
    """The cluster that all live tests share."""
    from tests.live.cluster import Cluster

    worker = getattr(pytestconfig, "workerinput", None)
    told: Told = pytestconfig.stash[SHARED].tell() if worker is None else worker["live"]
    if "skip" in told:
        pytest.skip(told["skip"])
    if "fail" in told:
        pytest.fail(told["fail"], pytrace=False)
    return Cluster(**told["cluster"])


@pytest.fixture(scope="session")
def kubeconfig(cluster: Cluster) -> Path:
    """Of somebody who may do everything on the shared cluster."""
    return Path(cluster.kubeconfig)


@pytest.fixture(scope="session")
def admin(cluster: Cluster) -> Iterator[Client]:
    """The tests' own client, for arranging things and for checking them."""
    from tests.live.client import Client

    client = Client(Path(cluster.kubeconfig), cluster.context)
    yield client
    client.close()


@pytest.fixture
def namespace(admin: Client) -> Iterator[str]:
    """A fresh namespace where pods can be made; deleted afterwards, without waiting for that."""
    name = f"live-{secrets.token_hex(4)}"
    make_namespace(admin, name)
    yield name
    admin.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def kinds(admin: Client) -> Iterator[str]:
    """The group of this worker's own kinds: those of manifests.KINDS, served in version v1 for as long as it runs."""
    from tests.live import manifests

    group = f"live-{secrets.token_hex(4)}.gevals-extensions.dev"
    paths = [admin.define(manifests.definition(kind, group)) for kind in manifests.KINDS]
    yield group
    for path in paths:
        admin.delete(path)


class Starter:
    """Starts ext-kubernetes; see the fixture `start`."""

    def __init__(self, stack: ExitStack, namespace: str, workdir: Path) -> None:
        self._stack = stack
        self._namespace = namespace
        self._workdir = workdir

    def __call__(self, kubeconfig: Path | None = None, env: Mapping[str, str] | None = None, **config: object) -> Kube:
        """Start one.

        Args:
            kubeconfig: whom to talk to, as whom; None where that is found otherwise.
            env: variables beside those of the tests.
            config: more of its configuration.
        """
        from tests.live.kubernetes import Kube

        told = {"namespace": self._namespace, **({"kubeconfig": str(kubeconfig)} if kubeconfig else {}), **config}
        return self._stack.enter_context(Kube(told, self._workdir, env))


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Starter]:
    """Starts ext-kubernetes for whom the test chooses: `start(kubeconfig)`."""
    namespace = request.getfixturevalue("namespace") if "namespace" in request.fixturenames else "default"
    with ExitStack() as stack:
        yield Starter(stack, namespace, tmp_path)


@pytest.fixture
def kube(cluster: Cluster, kubeconfig: Path, namespace: str, tmp_path: Path) -> Iterator[Kube]:
    """An ext-kubernetes of somebody who may do everything, at home in the test's namespace."""
    from tests.live.kubernetes import Kube

    config = {"kubeconfig": str(kubeconfig), "context": cluster.context, "namespace": namespace}
    with Kube(config, tmp_path) as one:
        one.ok("get", resource=f"ns/{namespace}")  # all is loaded: what may last a second has that second to itself
        yield one


@pytest.fixture
def streams(cluster: Cluster) -> None:
    """For tests of exec, logs and port-forward."""
    if not cluster.streams:
        pytest.skip("nobody serves streams: KUBEBUILDER_ASSETS has all programs but the node server of tests/live")


@pytest.fixture
def kubelets(cluster: Cluster) -> None:
    """For tests of what only a real kubelet does."""
    if not cluster.kubelets:
        pytest.skip("the pods of this cluster are simulated: run it on kind, or by --kubeconfig")


@pytest.fixture
def restricted(cluster: Cluster, admin: Client, namespace: str, tmp_path: Path) -> Path:
    """A kubeconfig of a service account that may do nothing: system:serviceaccount:NAMESPACE:tester."""
    from tests.live import kubeconfig

    account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    admin.request("POST", account, {"metadata": {"name": SERVICE_ACCOUNT}})
    request = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
    token = admin.request("POST", f"{account}/{SERVICE_ACCOUNT}/token", request)["status"]["token"]
    entry = kubeconfig.cluster_of(Path(cluster.kubeconfig), cluster.context)
    return kubeconfig.write(tmp_path / f"{SERVICE_ACCOUNT}.kubeconfig", entry, kubeconfig.with_token(token))


@pytest.fixture(scope="session")
def control_plane(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """A control plane of this worker's own, to be mistreated. Tests leave its API server running."""
    from tests.live.build import CannotBuild
    from tests.live.cluster import find_programs
    from tests.live.control_plane import ControlPlane

    try:
        programs = find_programs(reporter(pytestconfig))
    except CannotBuild as reason:
        skip(str(reason))
    with ControlPlane(programs) as plane:
        yield plane


def skip(reason: str) -> NoReturn:
    pytest.skip(f"no control plane of one's own: {reason}")


def namespace_object(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def make_namespace(admin: Client, name: str) -> None:
    """Make a namespace if it is not there, and wait until it has the account that pods run under."""
    path = f"/api/v1/namespaces/{name}"
    admin.apply(namespace_object(name))
    admin.wait_for(f"{path}/serviceaccounts/default", lambda _: True)
