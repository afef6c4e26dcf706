"""The cluster does what tests on it build on. Where its pods are simulated, this is what makes that a fair copy."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from tests.live.client import ApiError, Client, condition, held_back, wait_until
from tests.live.conftest import namespace_object
from tests.live.manifests import (
    GREEDY,
    RUNNING,
    UNAVAILABLE,
    UNREADY,
    configmap,
    custom,
    deployment,
    ends,
    job,
    pod,
    runs,
)
from tests.support.recorder_process import wait_until_gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.control_plane import ControlPlane

ROOT = Path(__file__).parents[2]
HOLD = "tests.live/hold"  # a finalizer that nobody serves


# --- Pods, and what makes them ---------------------------------------------------------------------------------------


def test_a_pod_runs_on_a_node(admin: Client, namespace: str) -> None:
    path = admin.apply(pod(), namespace)
    found = admin.wait_for(path, lambda it: condition(it, "Ready") == "True")
    assert found["status"]["phase"] == "Running"
    assert condition(admin.get(f"/api/v1/nodes/{found['spec']['nodeName']}"), "Ready") == "True"


def test_a_pod_that_is_deleted_goes(admin: Client, namespace: str) -> None:
    path = admin.apply(pod(), namespace)
    admin.wait_for(path, lambda it: condition(it, "Ready") == "True")
    admin.delete(path)
    admin.wait_gone(path)


def test_a_deployment_becomes_available_and_scales(admin: Client, namespace: str) -> None:
    path = admin.apply(deployment(replicas=1), namespace)
    admin.wait_for(path, lambda it: condition(it, "Available") == "True")
    admin.patch(path, {"spec": {"replicas": 3}})
    admin.wait_for(path, lambda it: it["status"].get("readyReplicas") == 3)


def test_a_container_that_keeps_failing_is_held_back(admin: Client, namespace: str) -> None:
    path = admin.apply(pod(ends(3)), namespace)
    found = admin.wait_for(path, lambda it: held_back(it) == "CrashLoopBackOff", timeout=60)
    (status,) = found["status"]["containerStatuses"]
    assert status["lastState"]["terminated"]["exitCode"] == 3
    assert found["status"]["phase"] == "Running"
    assert condition(found, "Ready") == "False"
    count = status["restartCount"]
    admin.wait_for(path, lambda it: it["status"]["containerStatuses"][0]["restartCount"] > count, timeout=90)


def test_a_container_that_keeps_failing_says_so_in_events(admin: Client, namespace: str) -> None:
    path = admin.apply(pod(ends(1)), namespace)
    admin.wait_for(path, lambda it: held_back(it) == "CrashLoopBackOff", timeout=60)
    admin.wait_for(
        f"/api/v1/namespaces/{namespace}/events",
        lambda it: any(event["reason"] == "BackOff" for event in it["items"]),
    )


def test_an_image_that_does_not_exist_is_tried_again_and_again(admin: Client, namespace: str) -> None:
    path = admin.apply(pod(UNAVAILABLE), namespace)
    found = admin.wait_for(path, lambda it: held_back(it) == "ImagePullBackOff", timeout=60)
    assert found["status"]["phase"] == "Pending"
    assert "registry.invalid/nothing:1" in found["status"]["containerStatuses"][0]["state"]["waiting"]["message"]


def test_a_pod_that_asks_for_too_much_is_unschedulable(admin: Client, namespace: str) -> None:
    path = admin.apply(pod(GREEDY), namespace)
    found = admin.wait_for(path, lambda it: condition(it, "PodScheduled") == "False")
    (scheduled,) = found["status"]["conditions"]
    assert scheduled["reason"] == "Unschedulable"


def test_a_pod_whose_probe_fails_runs_without_being_ready(admin: Client, namespace: str) -> None:
    path = admin.apply(pod(UNREADY), namespace)
    found = admin.wait_for(path, lambda it: it["status"]["phase"] == "Running")
    assert condition(found, "Ready") == "False"


def test_a_pod_becomes_ready_when_its_probe_may_begin(admin: Client, namespace: str) -> None:
    before = admin.get(f"/api/v1/namespaces/{namespace}/pods")["metadata"]["resourceVersion"]
    probe = {"initialDelaySeconds": 2, "periodSeconds": 1, "exec": {"command": ["true"]}}
    path = admin.apply(pod(RUNNING | {"readinessProbe": probe}), namespace)
    admin.wait_for(path, lambda it: condition(it, "Ready") == "True")
    running = [it for it in admin.history(path, before) if it["status"]["phase"] == "Running"]
    assert list(dict.fromkeys(condition(it, "Ready") for it in running)) == ["False", "True"]


def test_an_init_container_that_fails_holds_the_pod_back(admin: Client, namespace: str) -> None:
    path = admin.apply(pod(initContainers=[ends(2) | {"name": "first"}]), namespace)
    found = admin.wait_for(
        path,
        lambda it: (
            "waiting" in it["status"].get("initContainerStatuses", [{"state": {}}])[0]["state"]
            and it["status"]["initContainerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        ),
        timeout=60,
    )
    assert condition(found, "Initialized") == "False"
    assert held_back(found) == "PodInitializing"


@pytest.mark.parametrize(("code", "kind"), [(0, "Complete"), (4, "Failed")])
def test_a_job_ends_as_its_container_does(admin: Client, namespace: str, code: int, kind: str) -> None:
    path = admin.apply(job(ends(code)), namespace)
    admin.wait_for(path, lambda it: condition(it, kind) == "True")
    (found,) = admin.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    assert found["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code


# --- In pods ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("streams")
def test_a_container_has_said_what_its_command_says(admin: Client, namespace: str) -> None:
    path = admin.apply(pod(runs('echo first; echo "last line"; sleep 1000')), namespace)
    admin.wait_for(path, lambda it: condition(it, "Ready") == "True")
    assert admin.text("GET", f"{path}/log") == "first\nlast line\n"
    assert admin.text("GET", f"{path}/log", query={"tailLines": "1"}) == "last line\n"
    with pytest.raises(ApiError, match='previous terminated container "main" in pod "it" not found'):
        admin.text("GET", f"{path}/log", query={"previous": "true"})


@pytest.mark.usefixtures("streams")
def test_a_container_that_was_restarted_has_said_it_before(admin: Client, namespace: str) -> None:
    path = admin.apply(pod(runs("echo so long; exit 1")), namespace)
    admin.wait_for(path, lambda it: held_back(it) == "CrashLoopBackOff", timeout=60)
    assert admin.text("GET", f"{path}/log", query={"previous": "true"}) == "so long\n"


@pytest.mark.usefixtures("streams")
def test_a_container_without_an_image_has_no_log(admin: Client, namespace: str) -> None:
    path = admin.apply(pod(UNAVAILABLE), namespace)
    admin.wait_for(path, lambda it: held_back(it) == "ImagePullBackOff", timeout=60)
    with pytest.raises(ApiError, match="is waiting to start: trying and failing to pull image"):
        admin.text("GET", f"{path}/log")


@pytest.mark.usefixtures("streams")
def test_a_command_runs_in_a_container(kubeconfig: Path, admin: Client, namespace: str) -> None:
    path = admin.apply(pod(), namespace)
    admin.wait_for(path, lambda it: condition(it, "Ready") == "True")
    argv = ["sh", "-c", "read line; echo $line; echo aside >&2; exit 3"]
    code, out, err = execute(kubeconfig, namespace, argv, "told\n")
    assert (code, out, err) == (3, "told\n", "aside\n")


def execute(kubeconfig: Path, namespace: str, argv: list[str], stdin: str) -> tuple[int, str, str]:
    """Run a command in the pod `it`, by the Kubernetes project's own client."""
    from kubernetes.client.api.core_v1_api import CoreV1Api
    from kubernetes.config.kube_config import new_client_from_config
    from kubernetes.stream.stream import stream

    connect: Any = new_client_from_config
    client = connect(str(kubeconfig))
    run: Any = stream
    call = CoreV1Api(client).connect_get_namespaced_pod_exec
    streams = {"stdin": True, "stdout": True, "stderr": True, "tty": False}
    channel = run(call, "it", namespace, command=argv, _preload_content=False, **streams)
    channel.write_stdin(stdin)
    channel.run_forever(timeout=30)
    answer = channel.returncode, channel.read_stdout(timeout=1), channel.read_stderr(timeout=1)
    channel.close()
    channel.sock.shutdown()  # close leaves the socket open
    client.close()
    return answer


# --- The API server --------------------------------------------------------------------------------------------------


def test_a_namespace_hangs_while_a_finalizer_is_in_it(admin: Client, namespace: str) -> None:
    path = admin.apply(configmap(finalizers=[HOLD]), namespace)
    admin.delete(f"/api/v1/namespaces/{namespace}")
    found = admin.wait_for(
        f"/api/v1/namespaces/{namespace}", lambda it: condition(it, "NamespaceFinalizersRemaining") == "True"
    )
    assert found["status"]["phase"] == "Terminating"
    admin.patch(path, {"metadata": {"finalizers": None}})
    admin.wait_gone(f"/api/v1/namespaces/{namespace}")
    admin.apply(namespace_object(namespace))  # for the fixture to delete


def test_a_custom_resource_can_be_defined_and_has_conditions(admin: Client, kinds: str, namespace: str) -> None:
    path = admin.apply(custom("Switch", kinds, on=True), namespace)
    admin.patch(f"{path}/status", {"status": {"conditions": [{"type": "Lit", "status": "True"}]}})
    assert condition(admin.get(path), "Lit") == "True"


def test_a_service_account_without_a_role_is_denied(restricted: Path, namespace: str) -> None:
    client = Client(restricted)
    with pytest.raises(ApiError, match=f"system:serviceaccount:{namespace}:tester") as caught:
        client.get(f"/api/v1/namespaces/{namespace}/pods")
    client.close()
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")


# --- A control plane of one's own ------------------------------------------------------------------------------------


@pytest.fixture
def own(control_plane: ControlPlane) -> Iterator[Client]:
    client = Client(control_plane.kubeconfig)
    yield client
    client.close()


@pytest.mark.parametrize("politely", [True, False])
def test_what_is_stored_outlives_the_api_server(control_plane: ControlPlane, own: Client, politely: bool) -> None:
    kept = f"kept-{politely}".lower()
    path = own.apply(configmap(kept), "default")
    control_plane.stop_api_server(politely=politely)
    with pytest.raises(urllib3.exceptions.NewConnectionError):
        own.get(path)
    control_plane.start_api_server()
    assert own.get(path)["metadata"]["name"] == kept


def test_deployments_go_on_after_the_api_server_was_down(control_plane: ControlPlane, own: Client) -> None:
    control_plane.stop_api_server()
    control_plane.start_api_server()
    path = own.apply(deployment(replicas=1), "default")
    own.wait_for(path, lambda it: condition(it, "Available") == "True", timeout=60)
    own.delete(path)


def test_users_are_known_by_certificate_and_by_token(control_plane: ControlPlane) -> None:
    identities = control_plane.identities
    names = []
    for kubeconfig in (identities.user("somebody"), identities.token_user()):
        client = Client(kubeconfig)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = client.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        names.append(answer["status"]["userInfo"]["username"])
        client.close()
    assert names == ["somebody", "token-user"]


def test_credentials_that_have_expired_are_refused(control_plane: ControlPlane, own: Client) -> None:
    uid = own.uid("/api/v1/namespaces/default/serviceaccounts/default")
    identities = control_plane.identities
    valid = identities.service_account("default", "default", uid, lasts=60)
    denied = Client(valid)
    with pytest.raises(ApiError, match="403"):
        denied.get("/api/v1/nodes")
    denied.close()
    for expired in (
        identities.user("yesterday", lasts=-timedelta(minutes=5)),
        identities.service_account("default", "default", uid, lasts=-120),
    ):
        client = Client(expired)
        with pytest.raises(ApiError, match="401"):
            client.get("/api/v1/nodes")
        client.close()


def test_a_watch_from_before_a_restart_has_expired(control_plane: ControlPlane, own: Client) -> None:
    before = own.get("/api/v1/namespaces")["metadata"]["resourceVersion"]
    own.apply(configmap("later"), "default")
    control_plane.stop_api_server()
    control_plane.start_api_server()
    # Until it has filled its cache, the server asks etcd, which still knows the version.
    wait_until(lambda: own.too_old("/api/v1/namespaces", before), lambda: f"version {before} is not too old")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_a_cluster_is_left_when_its_owner_ends(control_plane: ControlPlane, end: signal.Signals) -> None:
    argv = [sys.executable, "-m", "tests.live", "--cluster", "control-plane"]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        directory = Path(owner.stdout.readline().strip().partition("=")[2]).parent
        assert processes_of(directory)
        owner.send_signal(end)
        assert owner.stdout.read() == ""  # it has ended
    for process in processes_of(directory):
        wait_until_gone(process)
    assert not processes_of(directory)
    assert directory.exists() == (end == signal.SIGKILL)
    shutil.rmtree(directory, ignore_errors=True)


def processes_of(directory: Path) -> list[int]:
    """Processes that name the directory in their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(directory).encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:  # it has ended
            continue
    return found
