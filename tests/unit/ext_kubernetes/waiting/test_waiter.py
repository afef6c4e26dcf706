"""Waits against a server on loopback that does what it is told: faults, watches, many at once."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from ext_kubernetes.polling import Verdict, WaitOutcome
from ext_kubernetes.waiting.failure_report import duration_text
from ext_kubernetes.waiting.waiter import WaitResult
from ext_sdk import Deadline, Duration
from tests.support.fake_kubernetes import SWITCH, FakeApi, Fault
from tests.support.host import execute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ext_kubernetes.targets import Target
    from ext_sdk import Context
    from tests.support.ext_kubernetes import Extension, Starter

WAIT = {"resource": "cm/it", "jsonPath": "$.data.state", "value": "done", "timeout": "20s"}


def state(value: str, name: str = "it") -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"state": value}}


def began(api: FakeApi, count: int = 1, method: str = "GET", path: str = "/configmaps") -> None:
    """Wait until so many requests have come."""
    until(lambda: len(api.requests(method, path)) >= count)


def watches(api: FakeApi) -> list[dict[str, str]]:
    """The queries of the watches of more than one object that came."""
    return [one.query for one in list(api.asked) if "watch" in one.query and "fieldSelector" not in one.query]


def until(holds: Callable[[], bool]) -> None:
    ever = threading.Event()
    for _ in range(4000):
        if holds():
            return
        ever.wait(0.005)
    raise AssertionError("it does not happen")


def start_wait(kube: Extension, id: str, args: dict[str, Any]) -> None:
    kube.peer.send(execute(id, "wait", args, **kube.context(phase="verify")))


def answers(kube: Extension, ids: Iterable[str]) -> list[dict[str, Any]]:
    left, found = set(ids), []
    while left:
        message: dict[str, Any] = kube.peer.message()
        if message.get("id") in left:
            left.remove(message["id"])
            found.append(message["result"])
    return found


class Waiting:
    """A call in a thread of its own, so that the test can change things meanwhile."""

    def __init__(self, kube: Extension, operation: str, args: dict[str, Any]) -> None:
        self._result: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._call, args=(kube, operation, args))
        self._thread.start()

    def _call(self, kube: Extension, operation: str, args: dict[str, Any]) -> None:
        self._result = kube.result(operation, args)

    def result(self) -> dict[str, Any]:
        self._thread.join()
        return self._result


def test_a_change_is_seen_while_waiting(kube: Extension, api: FakeApi) -> None:
    api.put("configmaps", state("new"))
    waiting = Waiting(kube, "wait", WAIT)
    began(api, path="/configmaps")
    api.put("configmaps", state("done"))
    assert waiting.result()["success"]


@pytest.mark.parametrize("watch", [True, False])
def test_a_watch_is_opened_unless_it_is_switched_off(start: Starter, api: FakeApi, tmp_path: Path, watch: bool) -> None:
    kube = start(api.kubeconfig(tmp_path / "kubeconfig"), None, {"watch": watch})
    waiting = Waiting(kube, "wait", WAIT)
    if watch:
        until(lambda: any("watch" in asked.query for asked in list(api.asked)))
    else:
        began(api, 10)
    api.put("configmaps", state("done"))
    assert waiting.result()["success"]
    assert any("watch" in asked.query for asked in api.asked) == watch


@pytest.mark.parametrize("fault", [
    Fault("GET", "/configmaps/it", 5, 503, "ServiceUnavailable"),
    Fault("GET", "/configmaps/it", 2, 429, "TooManyRequests", headers=(("Retry-After", "1"),)),
    Fault("GET", "/configmaps/it", 5, 0),
    Fault("GET", "/configmaps$", 100, 403, "Forbidden"),
], ids=["503", "429", "closed", "no watch"])  # fmt: skip
def test_what_passes_does_not_end_a_wait(kube: Extension, api: FakeApi, fault: Fault) -> None:
    api.faults.append(fault)
    waiting = Waiting(kube, "wait", WAIT)
    began(api, 3)
    api.put("configmaps", state("done"))
    assert waiting.result()["success"]


def test_a_server_that_is_away_when_a_wait_begins_is_waited_for(kube: Extension, api: FakeApi) -> None:
    api.faults.append(Fault("GET", "^/apis?$", 12, 0))
    api.put("configmaps", state("done"))
    assert kube.ok("wait", WAIT)


def test_a_server_that_stays_away_is_asked_until_the_deadline(kube: Extension, api: FakeApi) -> None:
    api.faults.append(Fault("GET", "^/apis?$", 1000, 503, "ServiceUnavailable", "out of order"))
    assert "out of order" in kube.failed("wait", WAIT | {"timeout": "300ms"})


@pytest.mark.parametrize(("status", "reason"), [(401, "Unauthorized"), (403, "Forbidden")])
def test_what_a_server_refuses_that_has_just_come_back_is_asked_again(
    kube: Extension, api: FakeApi, status: int, reason: str
) -> None:
    api.faults += [Fault("GET", "/configmaps/it", 1, 0), Fault("GET", "/configmaps/it", 3, status, reason)]
    api.put("configmaps", state("done"))
    assert kube.ok("wait", WAIT)


def test_a_kind_that_a_server_does_not_know_yet_is_asked_for_again(kube: Extension, api: FakeApi) -> None:
    api.faults.append(Fault("GET", "^/apis$", 1, 0))
    waiting = Waiting(kube, "wait", {"resource": "switch/it", "for": "exists", "timeout": "20s"})
    began(api, 5, path="/apis")
    api.put("customresourcedefinitions", SWITCH)
    api.put("switches", {"metadata": {"name": "it"}})
    assert waiting.result()["success"]


def test_a_wait_that_only_fails_tells_the_last_failure(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", {"resource": "ns/default"})
    api.faults.append(Fault("GET", "/configmaps", 1000, 503, "ServiceUnavailable", "out of order"))
    told = kube.failed("wait", WAIT | {"timeout": "300ms"})
    assert "the last poll failed: out of order" in told


@pytest.mark.parametrize(("status", "reason"), [(400, "BadRequest"), (401, "Unauthorized"), (403, "Forbidden")])
def test_what_does_not_pass_ends_a_wait_at_once(kube: Extension, api: FakeApi, status: int, reason: str) -> None:
    api.faults.append(Fault("GET", "/configmaps/it", 1000, status, reason, "no way"))
    assert "no way" in kube.failed("wait", WAIT)
    assert len(api.requests("GET", "/configmaps/it")) == 1


def test_an_unknown_kind_ends_a_wait_at_once(kube: Extension) -> None:
    assert "did you mean ConfigMap" in kube.failed("wait", WAIT | {"resource": "configmapz/it"})


def test_a_token_that_is_new_in_the_file_is_taken_in_the_middle_of_a_wait(
    start: Starter, api: FakeApi, tmp_path: Path
) -> None:
    api.token = "the-first-token"
    kube = start(api.kubeconfig(tmp_path / "kubeconfig", token=api.token), None, {"watch": False})
    waiting = Waiting(kube, "wait", WAIT)
    began(api, 4)
    api.kubeconfig(tmp_path / "kubeconfig", token="the-second-token")
    api.token = "the-second-token"
    api.put("configmaps", state("done"))
    assert waiting.result()["success"]


def test_a_token_that_has_expired_ends_a_wait_with_what_to_do(start: Starter, api: FakeApi, tmp_path: Path) -> None:
    api.token = "the-first-token"
    kube = start(api.kubeconfig(tmp_path / "kubeconfig", token=api.token), None, {"watch": False})
    waiting = Waiting(kube, "wait", WAIT)
    began(api, 4)
    api.token = "the-second-token"
    assert "The credentials of fake were rejected: they have expired" in str(waiting.result()["error"])


def test_a_watch_that_is_too_old_begins_anew(kube: Extension, api: FakeApi) -> None:
    api.oldest = 10_000  # what a list says is too old for a watch
    start_wait(kube, "all", WAIT | {"resource": "cm"})
    until(lambda: ["resourceVersion" in query for query in watches(api)] == [True, False])
    api.put("configmaps", state("done"))
    assert all(answer["success"] for answer in answers(kube, ["all"]))


def test_a_wait_without_success_says_what_there_was(kube: Extension, api: FakeApi) -> None:
    api.put("configmaps", state("new"))
    result = kube.result("wait", WAIT | {"timeout": "200ms"})
    assert result["success"] is False
    assert "expected configmap/it in namespace default: $.data.state=done; last found new" in str(result["error"])


def test_a_namespace_that_is_not_there_is_told(kube: Extension) -> None:
    args = {"resource": "pod/a", "namespace": "missing", "for": "exists", "timeout": "50ms"}
    assert "namespace missing does not exist" in kube.failed("wait", args)


def test_under_a_recorder_of_http_no_watch_is_opened(start: Starter, api: FakeApi, tmp_path: Path) -> None:
    kube = start(api.kubeconfig(tmp_path / "kubeconfig"), {"EXT_RECORDER_HTTP": "record:0:/nowhere"})
    kube.failed("wait", {"resource": "pod/a", "for": "exists", "timeout": "300ms"})
    assert not [asked for asked in api.asked if "watch" in asked.query]


def test_no_time_is_one_look(kube: Extension, api: FakeApi) -> None:
    kube.failed("wait", WAIT | {"timeout": "0s"})
    assert len(api.requests("GET", "/configmaps/it")) == 1


def test_many_waits_share_looks_and_one_watch(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", {"resource": "ns/default"})
    names = [f"it-{number}" for number in range(60)]
    for name in names:
        start_wait(kube, name, WAIT | {"resource": f"cm/{name}"})
    looked = 0
    while looked < len(names):  # each of them tells what it saw first
        looked += "NotFound" in str(kube.peer.message()["params"])
    until(lambda: len(watches(api)) > 0)
    before = len(api.asked)
    for name in names:
        api.put("configmaps", state("done", name))
    assert all(answer["success"] for answer in answers(kube, names))
    assert len(api.asked) - before < len(names)
    assert len(api.requests("GET", "/configmaps/it-")) < len(names)  # they are listed, not got one by one


def test_a_wait_ends_with_the_extension(own_kube: Extension, api: FakeApi) -> None:
    start_wait(own_kube, "wait", WAIT)
    began(api, 2)
    own_kube.peer.send({"jsonrpc": "2.0", "id": "end", "method": "shutdown"})
    (answer,) = answers(own_kube, ["wait"])
    assert answer["success"] is False
    assert own_kube.peer.exit_code() == 0


def test_arguments_that_wait_for_nothing_are_refused(kube: Extension) -> None:
    assert "expected one of" in kube.refused("wait", {"resource": "cm/it"})
    assert "found for and condition" in kube.refused(
        "wait", {"resource": "cm/it", "for": "ready", "condition": "Ready"}
    )
    assert "`value` requires `jsonPath`" in kube.refused("wait", {"resource": "cm/it", "for": "ready", "value": "1"})
    assert "expected at least one of expected, absent and count" in kube.refused("assert", {"resource": "cm/it"})
    assert "unknown operator $gtt" in kube.refused("assert", {"resource": "cm/it", "expected": {"a": {"$gtt": 1}}})
    assert "for: expected a duration" in kube.refused("stable", {"resource": "cm/it", "ready": True, "for": "0s"})
    assert "a name ('it') or a selector" in kube.refused(
        "condition", {"resource": "cm/it", "selector": "a=b", "conditionType": "Ready"}
    )
    assert "can't be scaled" in kube.refused("scale", {"resource": "cm/it", "replicas": 1})
    assert "expected one of Deployment" in kube.refused("rollout", {"resource": "cm/it"})
    assert "`selector` or `all: true`" in kube.refused("label", {"resource": "cm", "labels": {"a": "b"}})


def test_a_failure_says_which_labels_were_asked_for(kube: Extension) -> None:
    chosen = {"resource": "pods", "selector": "app=web", "timeout": "0s"}
    told = kube.failed("wait", chosen | {"for": "ready"})
    assert "pods are not ready\nexpected pods with labels app=web in namespace default: ready" in told
    assert "pods with labels app=web in namespace default not found" in told


def test_a_number_that_is_not_as_expected_is_told(kube: Extension, api: FakeApi) -> None:
    api.put("pods", {"metadata": {"name": "one"}})
    told = kube.failed("assert", {"resource": "pods", "count": 3, "timeout": "0s"})
    assert "not as expected\ncount: expected to equal 3, got 1\npods in namespace default: last found 1 of 1 as" in told
    assert "1 of 1 as expected: one" in told


def test_an_assertion_lists_each_difference_on_a_line_of_its_own(kube: Extension, api: FakeApi) -> None:
    text = "".join(f"line {number}\n" for number in range(9))
    api.put("configmaps", {"metadata": {"name": "one"}, "data": {"a": "1", "text": text, "long": "x " * 400}})
    data = {"a": "2", "text": text.replace("line 5", "line five"), "long": "x " * 300 + "y" + " x" * 99}
    error = str(kube.result("assert", {"resource": "cm/one", "expected": {"data": data}, "timeout": "0s"})["error"])
    assert error.startswith(
        'data.a: expected "2", found "1"\n'
        "data.text: differs from the expected text from line 6 on (- expected, + got):\n"
        "    line 3\n"
        "    line 4\n"
        "  - line five\n"
        "  + line 5\n"
    )
    assert '\ndata.long:\n  expected "x x x x x x x x x x y x x' in error
    assert "\nconfigmap/one in namespace default: last found 0 of 1 as expected, after 0." in error


def test_an_assertion_on_several_objects_names_the_closest(kube: Extension, api: FakeApi) -> None:
    for name, value in (("one", "1"), ("two", "2")):
        api.put("configmaps", {"metadata": {"name": name}, "data": {"a": value, "b": "2"}})
    error = str(kube.result("assert", {"resource": "cm", "expected": {"data": {"a": "3"}}, "timeout": "0s"})["error"])
    assert error.startswith(
        'one:\n  data.a: expected "3", found "1"\nconfigmaps in namespace default: last found 0 of 2'
    )
    absent = {"resource": "cm", "expected": {"data": {"b": "2"}}, "absent": True, "timeout": "0s"}
    error = str(kube.result("assert", absent)["error"])
    assert error.startswith(
        "expected configmaps in namespace default to be absent, last found 2 of 2 as expected: one, t"
    )


def test_events_that_are_too_few_are_not_said_to_be_none(kube: Extension, api: FakeApi) -> None:
    told = kube.failed("events", {"count": 2, "timeout": "0s"})
    assert "events in namespace default not found" in told
    api.put("events", {"metadata": {"name": "one"}, "reason": "Pulled", "type": "Normal", "message": "it is there"})
    told = kube.failed("events", {"count": 2, "timeout": "0s"})
    assert "expected to equal 2, got 1" in told
    assert "there are no" not in told


def test_a_value_is_told_as_json_has_it(kube: Extension, api: FakeApi) -> None:
    api.put("pods", {"metadata": {"name": "one"}})
    told = kube.failed("wait", {"resource": "pod/one", "jsonPath": "$.spec.lit", "value": True, "timeout": "0s"})
    assert "$.spec.lit=true" in told


@pytest.mark.parametrize("metadata", [{}, {"namespace": "default"}])
def test_an_object_whose_name_was_forgotten_does_not_stand_for_all(
    kube: Extension, api: FakeApi, metadata: dict[str, str]
) -> None:
    api.put("pods", {"metadata": {"name": "one"}})
    named = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    for operation, wanted in (("wait", {"for": "exists"}), ("assert", {"count": 1})):
        assert "metadata.name: required" in kube.refused(operation, named | wanted)
        assert kube.ok(operation, {"kind": "Pod"} | wanted)["count"] == "1"
    assert kube.ok("wait", {"resource": "pod/one", "metadata": metadata, "for": "exists"})["count"] == "1"


def test_pods_that_the_cluster_refuses_are_told_with_the_reason(kube: Extension, api: FakeApi) -> None:
    refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: one"}
    conditions = [refused, {"type": "Progressing", "status": "True", "reason": "NewReplicaSetCreated"}]
    status = {"observedGeneration": 1, "conditions": conditions}
    api.put("deployments", {"metadata": {"name": "web", "generation": 1}, "spec": {"replicas": 1}, "status": status})
    result = kube.result("wait", {"resource": "deploy/web", "for": "ready", "timeout": "0s"})
    told = "ReplicaFailure=True (FailedCreate: exceeded quota: one)"
    assert f"0 of 1 replicas have the newest template; {told}" in str(result["outputs"])
    assert f"\n  {told}" in str(result["error"])
    assert "NewReplicaSetCreated" not in str(result["error"])


def test_a_value_that_is_not_there_is_told(kube: Extension, api: FakeApi) -> None:
    api.put("configmaps", {"metadata": {"name": "it"}})
    told = kube.failed("wait", {"resource": "cm/it", "jsonPath": "{.spec.nope}", "timeout": "0s"})
    assert told.startswith("ConfigMap it: a value at {.spec.nope} not found\n")


@pytest.mark.parametrize(("elapsed", "told"), [(9.9, False), (5.0, True)])
def test_the_time_of_a_call_counts_from_its_beginning(elapsed: float, told: bool) -> None:
    deadline = Deadline(10.0)
    deadline._began -= elapsed
    seen = WaitResult(WaitOutcome(Verdict(done=False, status=""), 1.0, 1), [], cast("Target", None))
    context = cast("Context", SimpleNamespace(deadline=deadline))
    assert ("set `onTimeout: ok` to continue" in duration_text(seen, context, Duration.parse("10s"))) == told


# --- Several kinds ---------------------------------------------------------------------------------------------------


def test_a_wait_on_several_kinds_ends_with_the_last_of_them(kube: Extension, api: FakeApi) -> None:
    for plural in ("services", "configmaps", "secrets"):
        api.put(plural, {"metadata": {"name": "it", "labels": {"app": "it"}}})
    args = {"resource": "svc,cm,secret", "selector": "app=it", "for": "deleted", "timeout": "20s"}
    start_wait(kube, "several", args)
    until(lambda: len(watches(api)) == 3)
    for plural in ("secrets", "services", "configmaps"):
        api.remove(plural, "it")
    (ended,) = answers(kube, ["several"])
    assert ended["message"] == "objects of svc, cm, secret: deleted"


def test_the_objects_of_several_kinds_are_named_with_their_kinds(kube: Extension, api: FakeApi) -> None:
    api.put("services", {"metadata": {"name": "it"}})
    api.put("pods", {"metadata": {"name": "it"}, "status": {"phase": "Pending"}})
    told = kube.failed("wait", {"resource": "svc,pods", "for": "ready", "timeout": "0s"})
    assert (
        "expected objects of svc, pods in namespace default: ready; last found 1 of 2 (pod/it: phase is Pending" in told
    )
    assert told.index("Pod/it: ") < told.index("Service/it: ")  # what is not ready comes first
    told = kube.failed("assert", {"resource": "pods,svc", "absent": True, "timeout": "0s"})
    assert "expected objects of pods, svc in namespace default to be absent" in told
    assert "2 of 2 as expected: pod/it, service/it" in told
    assert kube.ok("assert", {"resource": "deploy,sts", "absent": True, "timeout": "0s"})["count"] == "0"


def test_nothing_is_found_in_a_namespace_that_does_not_exist(kube: Extension) -> None:
    for operation, args in (
        ("get", {"count": 0}),
        ("assert", {"absent": True}),
        ("assert", {"count": 0}),
        ("events", {"count": 0}),
    ):
        negative = {"resource": "pods", **args}
        kube.ok(operation, negative)
        told = kube.failed(operation, negative | {"namespace": "nope"})
        assert "can't be checked\nnamespace nope does not exist; create it" in told
    deleted: dict[str, dict[str, object]] = {
        "wait": {"resource": "pod/it", "for": "deleted"},
        "delete": {"resource": "pods", "all": True},
    }
    for name, wanted in deleted.items():
        assert "nope" not in kube.ok(name, wanted)["message"]
        assert kube.ok(name, wanted | {"namespace": "nope"})["message"].endswith("; namespace nope does not exist")


def test_absence_holds_only_in_a_namespace(kube: Extension, api: FakeApi) -> None:
    stays = {"resource": "pod/it", "absent": True, "for": "100ms"}
    outputs = kube.ok("stable", stays | {"timeout": "20s"})
    assert (outputs["message"], outputs["count"]) == ("Pod it: absent for 100ms", "0")
    told = kube.failed("stable", stays | {"namespace": "gone", "timeout": "20s"})
    assert "Pod it can't be checked\nnamespace gone does not exist" in told
    api.put("pods", {"metadata": {"name": "it"}})
    assert "absent for 100ms; last found Pod/it exists" in kube.failed("stable", stays | {"timeout": "200ms"})
