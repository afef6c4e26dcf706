"""`run-job`, against an API server on loopback that runs jobs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

MANIFEST = """
apiVersion: batch/v1
kind: Job
metadata: {name: given}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}
"""


def test_a_job_runs_to_its_end(kube: Extension, api: FakeApi) -> None:
    api.job_exit = 0
    found = kube.ok("run-job", {"image": "busybox", "command": ["true"], "env": {"A": "b"}, "serviceAccount": "runner"})
    assert (found["log"], found["exitCode"], found["succeeded"]) == ("it ran\n", "0", "true")
    assert found["name"].startswith("job-")
    job = api.get("jobs", found["name"])
    assert job is not None
    pod = {"restartPolicy": "Never", "serviceAccountName": "runner"}
    container = {"name": "main", "image": "busybox", "command": ["true"], "env": [{"name": "A", "value": "b"}]}
    assert job["spec"] == {"backoffLimit": 0, "template": {"spec": pod | {"containers": [container]}}}


def test_a_job_that_fails_is_a_failure_with_its_log(kube: Extension, api: FakeApi) -> None:
    api.job_exit = 3
    result = kube.result("run-job", {"image": "busybox", "name": "it"})
    assert result["success"] is False
    assert "BackoffLimitExceeded" in str(result["error"])
    outputs = result["outputs"]
    assert isinstance(outputs, dict)
    assert (outputs["log"], outputs["exitCode"], outputs["succeeded"]) == ("it ran\n", "3", "false")


def test_a_failure_may_be_what_is_expected(kube: Extension, api: FakeApi) -> None:
    api.job_exit = 3
    wanted = {"image": "busybox", "expect": {"exitCode": "nonzero", "log": {"contains": "ran"}}}
    assert kube.ok("run-job", wanted)["succeeded"] == "false"
    told = kube.failed("run-job", {"image": "busybox", "expect": {"exitCode": 4, "log": "else"}})
    assert "2 of 2 checks failed" in told
    assert "exitCode: expected" in told


def test_a_manifest_of_a_job_is_run(kube: Extension, api: FakeApi) -> None:
    api.job_exit = 0
    assert kube.ok("run-job", {"manifest": MANIFEST})["name"] == "given"
    assert kube.ok("run-job", {"manifest": MANIFEST, "name": "other"})["name"] == "other"
    wrong = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}
    assert "expected one batch/v1 Job, found v1 Pod" in kube.refused("run-job", {"manifest": wrong})


def test_the_step_after_one_with_on_timeout_ok_reads_the_same_job(kube: Extension, api: FakeApi) -> None:
    api.job_exit = 0
    args: dict[str, object] = {"image": "busybox", "name": "it"}
    kube.ok("run-job", args | {"onTimeout": "ok"})
    first = api.get("jobs", "it")
    assert kube.ok("run-job", args | {"expect": {"exitCode": 0}, "onTimeout": "ok"})["done"] == "true"
    assert "exitCode: expected" in kube.failed("run-job", args | {"expect": {"exitCode": 1}, "onTimeout": "ok"})
    kube.ok("run-job", args)
    assert api.get("jobs", "it") == first
    assert "already exists" in kube.failed("run-job", args)


def test_a_job_with_a_generated_name_continues_in_the_next_step(kube: Extension, api: FakeApi) -> None:
    args: dict[str, object] = {"image": "busybox"}
    other = {"image": "other", "timeout": "100ms", "onTimeout": "ok"}
    first = kube.ok("run-job", args | {"timeout": "100ms", "onTimeout": "ok"})
    assert (first["done"], kube.ok("run-job", other)["name"] != first["name"]) == ("false", True)
    second = kube.failed("run-job", args | {"timeout": "100ms"})
    assert f"Job/{first['name']} did not succeed" in second
    api.job_exit = 0
    assert kube.ok("run-job", args)["name"] != first["name"]


def test_a_job_that_was_deleted_after_its_step_is_run_again(kube: Extension, api: FakeApi) -> None:
    api.job_exit = 0
    args: dict[str, object] = {"image": "busybox", "name": "it", "onTimeout": "ok"}
    kube.ok("run-job", args | {"cleanup": True})
    assert api.get("jobs", "it") is None
    kube.ok("run-job", args)
    first = api.get("jobs", "it")
    kube.ok("delete", {"resource": "job/it"})
    kube.ok("run-job", args)
    second = api.get("jobs", "it")
    assert first is not None
    assert second is not None
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    told = kube.failed("run-job", args | {"command": ["other"]})
    assert "(409 AlreadyExists). A previous step started it from another template: its arguments differ. Choose" in told


def test_it_is_an_image_or_a_manifest(kube: Extension) -> None:
    assert "expected one of image, manifest and from" in kube.refused("run-job", {})
    assert "require `image`" in kube.refused("run-job", {"manifest": MANIFEST, "command": ["x"]})


def test_a_job_is_deleted_on_request_however_it_ends(kube: Extension, api: FakeApi) -> None:
    api.job_exit = 0
    kube.ok("run-job", {"image": "busybox", "name": "good", "cleanup": True})
    api.job_exit = None
    told = kube.failed("run-job", {"image": "busybox", "name": "slow", "cleanup": True, "timeout": "100ms"})
    assert "Job/slow did not succeed" in told
    assert api.get("jobs", "good") is None
    assert api.get("jobs", "slow") is None
    assert {asked.body["propagationPolicy"] for asked in api.requests("DELETE")} == {"Background"}


def test_a_log_that_cannot_be_read_is_no_failure_unless_it_matters(kube: Extension, api: FakeApi) -> None:
    api.job_exit = 0
    gone = Fault("GET", "/log$", status=404, reason="NotFound", message="the log has gone")
    api.faults.append(gone)
    assert kube.ok("run-job", {"image": "busybox"})["log"] == ""
    api.faults.append(gone)
    told = kube.failed("run-job", {"image": "busybox", "expect": {"log": {"contains": "ran"}}})
    assert "the log has gone" in told


def test_a_pod_that_cannot_start_ends_the_wait_early(kube: Extension, api: FakeApi) -> None:
    waiting = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    metadata = {"name": "it-1", "labels": {"job-name": "it"}}
    spec = {"containers": [{"name": "main"}]}
    api.put(
        "pods", {"metadata": metadata, "spec": spec, "status": {"phase": "Pending", "containerStatuses": [waiting]}}
    )
    told = kube.failed("run-job", {"image": "nothing", "name": "it", "timeout": "25s"})
    assert "gave up early" in told
    assert "ImagePullBackOff" in told


def test_a_log_that_is_cut_is_said_to_be(kube: Extension, api: FakeApi) -> None:
    api.job_exit = 0
    api.logs |= dict.fromkeys(["it-x1y2z/main", "it2-x1y2z/main"], "x" * (8 * 1024 * 1024 + 1))
    message = kube.ok("run-job", {"name": "it", "image": "busybox"})["message"]
    assert "; only the first 8,388,608 bytes of its log were read" in message
    told = kube.failed("run-job", {"name": "it2", "image": "busybox", "expect": {"log": {"notContains": "y"}}})
    assert "log: expected to be checked completely, got more than 8 MiB" in told
