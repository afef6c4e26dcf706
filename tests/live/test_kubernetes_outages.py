"""ext-kubernetes while its server is away, comes back, or takes its credentials no longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.live.client import Client, wait_until
from tests.live.kubernetes import LONG
from tests.live.manifests import configmap, custom, definition
from tests.live.permissions import granted
from tests.live.relay import Relay, Watched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.live.conftest import Starter
    from tests.live.control_plane import ControlPlane

DONE = {"jsonPath": "$.data.state", "value": "done", "timeout": LONG}
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


@pytest.fixture
def own(control_plane: ControlPlane) -> Iterator[Client]:
    """The tests' own client of the control plane that is mistreated."""
    client = Client(control_plane.kubeconfig)
    yield client
    client.close()


def test_an_operation_that_can_not_reach_the_server_says_so(start: Starter, control_plane: ControlPlane) -> None:
    kube = start(control_plane.kubeconfig)
    kube.ok("get", resource="ns/default")
    control_plane.stop_api_server()
    try:
        told = kube.failed("get", resource="ns/default")
    finally:
        control_plane.start_api_server()
    assert "API server https://127.0.0.1:" in told
    assert "Connection refused; it last responded" in told
    kube.ok("get", resource="ns/default")


@pytest.mark.parametrize("politely", [True, False])
def test_a_server_that_restarts_in_the_middle_of_a_wait(
    start: Starter, control_plane: ControlPlane, own: Client, politely: bool
) -> None:
    kube = start(control_plane.kubeconfig)
    name = f"restart-{politely}".lower()
    waiting = kube.start("wait", DONE, resource=f"cm/{name}")
    kube.heard("NotFound")
    control_plane.stop_api_server(politely=politely)
    control_plane.start_api_server()
    own.apply(configmap(name, {"state": "done"}), "default")
    kube.succeeded(waiting)


def test_a_wait_may_begin_while_the_server_is_away(start: Starter, control_plane: ControlPlane, own: Client) -> None:
    kube = start(control_plane.kubeconfig)
    own.apply(configmap("away", {"state": "done"}), "default")
    control_plane.stop_api_server(politely=False)
    waiting = kube.start("wait", DONE, resource="cm/away")
    assert "did not respond" in kube.failed("get", resource="cm/away")
    control_plane.start_api_server()
    kube.succeeded(waiting)


def test_what_a_starting_server_does_not_know_yet_ends_no_wait(
    start: Starter, control_plane: ControlPlane, own: Client
) -> None:
    """It answers before it has read definitions and roles: kinds are unknown then, and users may do nothing."""
    user = start(control_plane.identities.service_account("default", "default", own.uid(ACCOUNT), lasts=600))
    kube = start(control_plane.kubeconfig)
    group = "restart.gevals-extensions.dev"
    own.define(definition("Switch", group))
    own.apply(custom("Switch", group), "default")
    own.apply(configmap("role", {"state": "done"}), "default")
    with granted(own, "default", ["get"], "configmaps", account="default"):
        control_plane.stop_api_server(politely=False)
        for one in (kube, user):
            assert "did not respond" in one.failed("get", resource="cm/role")
        waits = [
            (kube, kube.start("wait", {"resource": f"switch.{group}/it", "for": "exists", "timeout": LONG})),
            (user, user.start("wait", DONE, resource="cm/role")),
        ]
        control_plane.start_api_server()
        for one, waiting in waits:
            one.succeeded(waiting)


def test_a_watch_that_is_too_old_after_a_restart_is_begun_anew(
    start: Starter, control_plane: ControlPlane, own: Client, tmp_path: Path
) -> None:
    """A relay holds back all further lists, so that nobody but the watch can tell that the state is reached."""
    path = own.apply(configmap("many", labels={"app": "many"}), "default")
    with Relay(control_plane.kubeconfig) as relay:
        kube = start(relay.kubeconfig(tmp_path / "relay.kubeconfig"))
        waiting = kube.start("wait", DONE, resource="cm", selector="app=many")
        kube.heard("0 of 1")
        wait_until(lambda: bool(relay.watches), lambda: "no watch yet")
        lists = relay.hold("lists", "watches")
        for number in range(3):  # versions go on that the watch is not told of
            own.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"later-{number}"}})
        control_plane.stop_api_server()
        control_plane.start_api_server()
        # Until it has filled its cache, the server asks etcd, which still knows the version.
        version = relay.watches[-1].version
        wait_until(lambda: own.too_old(CONFIGMAPS, version), lambda: f"version {version} is not too old")
        relay.hold("lists")
        own.patch(path, {"data": {"state": "done"}})
        kube.succeeded(waiting)
    assert any(watch.version and watch.too_old for watch in relay.watches), relay.watches
    assert relay.watches[-1] == Watched("", too_old=False), relay.watches
    assert relay.lists == lists


def test_a_server_that_stays_away_is_told(start: Starter, control_plane: ControlPlane) -> None:
    kube = start(control_plane.kubeconfig)
    kube.ok("wait", {"resource": "ns/default", "for": "exists"})
    control_plane.stop_api_server(politely=False)
    try:
        told = kube.failed("wait", {"resource": "cm/none", "for": "exists", "timeout": "2s"})
    finally:
        control_plane.start_api_server()
    assert "the last poll failed: API server https://127.0.0.1:" in told
