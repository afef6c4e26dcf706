"""`logs`, against an API server on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi


def put_pod(api: FakeApi, name: str, *containers: str, phase: str = "Running", **metadata: Any) -> None:
    spec = {"containers": [{"name": one} for one in containers]}
    metadata = {"name": name, "labels": {"app": "web"}} | metadata
    api.put("pods", {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


@pytest.fixture
def pod(api: FakeApi) -> FakeApi:
    put_pod(api, "web-1", "main", "side")
    api.logs |= {"web-1/main": "one\ntwo\nthree\n", "web-1/side": "aside"}
    return api


def test_the_log_of_the_first_container_is_read(kube: Extension, pod: FakeApi) -> None:
    found = kube.ok("logs", {"resource": "pod/web-1"})
    assert (found["log"], found["lines"], found["pods"]) == ("one\ntwo\nthree\n", "3", "web-1")


def test_an_annotation_says_which_container_is_the_usual_one(kube: Extension, pod: FakeApi) -> None:
    put_pod(pod, "web-1", "main", "side", annotations={"kubectl.kubernetes.io/default-container": "side"})
    assert kube.ok("logs", {"resource": "pod/web-1"})["log"] == "aside\n"


def test_a_container_is_chosen_by_name(kube: Extension, pod: FakeApi) -> None:
    assert kube.ok("logs", {"resource": "pod/web-1", "container": "side"})["log"] == "aside\n"
    told = kube.failed("logs", {"resource": "pod/web-1", "container": "sid"})
    assert "pod/web-1 has no container 'sid', its containers are main, side" in told


def test_the_server_is_asked_for_what_is_wanted(kube: Extension, pod: FakeApi) -> None:
    args = {"resource": "pod/web-1", "tail": 1, "since": "1500ms", "previous": True, "timestamps": True}
    assert kube.ok("logs", args)["log"] == "three\n"
    (asked,) = pod.requests("GET", "/log")
    wanted = {"container": "main", "tailLines": "1", "sinceSeconds": "2", "previous": "true", "timestamps": "true"}
    assert asked.query.items() >= wanted.items()
    assert int(asked.query["limitBytes"]) == 8 * 1024 * 1024 + 1


def test_logs_of_a_workload_are_those_of_its_pods(kube: Extension, pod: FakeApi) -> None:
    put_pod(pod, "web-2", "main")
    put_pod(pod, "db-1", "main", labels={"app": "db"})
    pod.logs["web-2/main"] = "four\n"
    expression = {"key": "app", "operator": "In", "values": ["web", "shop"]}
    pod.put("deployments", {"metadata": {"name": "web"}, "spec": {"selector": {"matchExpressions": [expression]}}})
    pod.put("services", {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}})
    for args in ({"resource": "deploy/web"}, {"resource": "svc/web"}, {"selector": "app=web"}):
        found = kube.ok("logs", args)
        assert (found["log"], found["pods"]) == ("one\ntwo\nthree\nfour\n", "web-1\nweb-2")


def test_lines_may_say_whose_they_are(kube: Extension, pod: FakeApi) -> None:
    found = kube.ok("logs", {"resource": "pod/web-1", "allContainers": True, "prefix": True, "tail": 1})
    assert found["log"] == "[pod/web-1/main] three\n[pod/web-1/side] aside\n"


def test_what_has_no_pods_is_refused(kube: Extension, pod: FakeApi) -> None:
    pod.put("configmaps", {"metadata": {"name": "x"}})
    assert "cm/x selects no pods" in kube.failed("logs", {"resource": "cm/x"}).replace("configmap", "cm")
    assert "expected pods of labels app=none, found none" in kube.failed("logs", {"selector": "app=none"})
    assert "by name or by labels" in kube.refused("logs", {"resource": "pod/web-1", "selector": "a=b"})


def test_a_log_is_held_against_what_is_expected(kube: Extension, pod: FakeApi) -> None:
    wanted = {"resource": "pod/web-1", "expect": {"contains": "two", "notContains": "panic"}}
    assert "2 checks passed" in kube.ok("logs", wanted)["message"]
    told = kube.failed("logs", {"resource": "pod/web-1", "expect": {"matches": "fou?r"}})
    assert "log: expected to match" in told


def test_a_container_that_has_not_started_is_told(kube: Extension, api: FakeApi) -> None:
    put_pod(api, "web-1", "main")
    told = kube.failed("logs", {"resource": "pod/web-1"})
    assert "is waiting to start: ContainerCreating" in told
    assert "container main of pod web-1 in namespace default" in told


def test_a_text_is_waited_for_even_if_there_is_no_pod_yet(kube: Extension, pod: FakeApi) -> None:
    pod.faults.append(Fault("GET", "/pods/web-1$", times=2, status=404, reason="NotFound", message="no such pod"))
    waiting = 'container "main" in pod "web-1" is waiting to start: ContainerCreating'
    pod.faults.append(Fault("GET", "/log$", times=2, status=400, reason="BadRequest", message=waiting))
    args = {"resource": "pod/web-1", "follow": True, "expect": {"matches": "(?m)^three$"}, "timeout": "20s"}
    assert kube.ok("logs", args)["lines"] == "3"
    assert len(pod.requests("GET", "/pods/web-1")) == 5 + 3


def test_a_text_that_will_never_come_is_not_waited_for(kube: Extension, pod: FakeApi) -> None:
    put_pod(pod, "web-1", "main", phase="Succeeded")
    args = {"resource": "pod/web-1", "follow": True, "expect": {"contains": "four"}, "timeout": "20s"}
    told = kube.failed("logs", args)
    assert "the containers have ended, so the logs are complete" in told
    assert len(pod.requests("GET", "/log")) == 1


def test_at_the_deadline_the_log_is_put_out(kube: Extension, pod: FakeApi) -> None:
    args = {"resource": "pod/web-1", "follow": True, "expect": {"contains": "four"}, "timeout": "2s"}
    result = kube.result("logs", args)
    assert result["success"] is False
    assert result["outputs"] == {"log": "one\ntwo\nthree\n", "lines": "3", "pods": "web-1", "done": "false"}


def test_following_goes_on_to_the_end_of_the_containers(kube: Extension, pod: FakeApi) -> None:
    assert "the containers still run" in kube.failed("logs", {"resource": "pod/web-1", "follow": True, "timeout": "2s"})
    put_pod(pod, "web-1", "main", phase="Failed")
    assert kube.ok("logs", {"resource": "pod/web-1", "follow": True})["lines"] == "3"


def test_a_node_that_does_not_answer_is_tried_again(kube: Extension, pod: FakeApi) -> None:
    pod.faults.append(Fault("GET", "/log", times=2, status=502, reason="", message="dial tcp: refused"))
    assert kube.ok("logs", {"resource": "pod/web-1"})["lines"] == "3"


def test_a_log_that_is_cut_is_said_to_be(kube: Extension, pod: FakeApi) -> None:
    pod.logs["web-1/main"] = ("x" * 1023 + "\n") * 8 * 1024
    assert "cut" not in kube.ok("logs", {"resource": "pod/web-1"})
    pod.logs["web-1/main"] += "y"
    found = kube.ok("logs", {"resource": "pod/web-1"})
    assert (
        "only the first 8 MiB of pod/web-1/main were read; set `tail` or `since` to read the last lines"
        in found["message"]
    )
    assert (found["cut"], found["lines"]) == ("pod/web-1/main", str(8 * 1024))


@pytest.mark.parametrize("follow", [False, True])
def test_a_log_that_is_cut_is_not_checked(kube: Extension, pod: FakeApi, follow: bool) -> None:
    pod.logs["web-1/main"] = "x" * 8 * 1024 * 1024 + "y"
    for expect in ({"notContains": "y"}, {"contains": "x"}):
        told = kube.failed("logs", {"resource": "pod/web-1", "expect": expect, "follow": follow})
        assert "log: expected to be checked completely, got more than 8 MiB of pod/web-1/main" in told
    pod.logs["web-1/main"] = "x\n" * 8 * 1024 * 1024 + "y"
    kube.ok("logs", {"resource": "pod/web-1", "expect": {"contains": "y"}, "tail": 2, "follow": follow})


def test_bytes_that_are_no_text_are_replaced(kube: Extension, pod: FakeApi) -> None:
    pod.faults.append(Fault("GET", "/log", status=200, body=b"a\xffb\n"))
    assert kube.ok("logs", {"resource": "pod/web-1"})["log"] == "a\ufffdb\n"


def test_pods_that_are_being_deleted_are_left_out_while_others_exist(kube: Extension, pod: FakeApi) -> None:
    pod.put("deployments", {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}})
    put_pod(pod, "web-0", "main", deletionTimestamp="2026-01-01T00:00:00Z")
    pod.logs["web-0/main"] = "old\n"
    for args in ({"resource": "deploy/web"}, {"selector": "app=web"}):
        assert kube.ok("logs", args)["pods"] == "web-1"
    assert kube.ok("logs", {"resource": "pod/web-0"})["log"] == "old\n"
    put_pod(pod, "web-1", "main", deletionTimestamp="2026-01-01T00:00:00Z")
    assert kube.ok("logs", {"resource": "deploy/web"})["pods"] == "web-0\nweb-1"
