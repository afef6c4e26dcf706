"""What a cluster says when it is asked plainly: the tests' own client, for arranging and for checking.

It shares with the code under test the reading of kubeconfig files and nothing else.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode

import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.config.kube_config import load_kube_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Object: TypeAlias = dict[str, Any]  # a Kubernetes object as it came, of any kind

TIMEOUT = urllib3.Timeout(connect=5.0, read=30.0)  # seconds
POLL_SECONDS = 0.02
PATIENCE_SECONDS = 120.0  # for what takes a second or two, on a machine that is not busy
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """The server answered with a failure.

    Attributes:
        code: of HTTP.
        reason: of the Status object; "" without one.
    """

    def __init__(self, what: str, code: int, body: str) -> None:
        try:
            status = json.loads(body)
        except ValueError:
            status = {}
        self.code = code
        self.reason = str(status.get("reason", ""))
        super().__init__(f"{what}: {code} {status.get('message', body)}")


class Client:
    """Talks to the API server of one kubeconfig, without retries. For one thread.

    Args:
        kubeconfig: the file.
        context: "" for its current one.
    """

    def __init__(self, kubeconfig: Path, context: str = "") -> None:
        configuration: Any = Configuration()
        load: Any = load_kube_config
        load(str(kubeconfig), context or None, configuration, persist_config=False)
        self._configuration = configuration
        client: Any = ApiClient(configuration)
        self._pool: urllib3.PoolManager = client.rest_client.pool_manager
        self._resources: dict[str, dict[str, tuple[str, bool]]] = {}

    def text(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> str:
        """Make a request.

        Args:
            method: of HTTP.
            path: with the leading slash.
            body: to be sent as JSON, if not None.
            query: parameters.
            content_type: of the body.

        Returns:
            the body of the answer.

        Raises:
            ApiError: any code over 299.
            urllib3.exceptions.HTTPError: no answer.
        """
        headers = {"Accept": "application/json", "Content-Type": content_type}
        if authorization := self._configuration.get_api_key_with_prefix("authorization", "BearerToken"):
            headers["Authorization"] = authorization
        response = self._pool.request(
            method,
            f"{self._configuration.host}{path}{'?' if query else ''}{urlencode(query or {})}",
            body=None if body is None else json.dumps(body),
            headers=headers,
            timeout=TIMEOUT,
            retries=False,
        )
        text = response.data.decode()
        if response.status >= 300:
            raise ApiError(f"{method} {path}", response.status, text)
        return text

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """Make a request whose answer is an object; see `text`."""
        answer: Object = json.loads(self.text(method, path, body, query=query, content_type=content_type))
        return answer

    def get(self, path: str) -> Object:
        """Get the object, or the list, at a path."""
        return self.request("GET", path)

    def uid(self, path: str) -> str:
        """The uid of the object at a path."""
        return str(self.get(path)["metadata"]["uid"])

    def exists(self, path: str) -> bool:
        """Whether there is an object at a path."""
        try:
            self.get(path)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    def delete(self, path: str) -> None:
        """Delete the object at a path; what depends on it goes by itself."""
        self.request("DELETE", path, {"propagationPolicy": "Background"})

    def patch(self, path: str, change: object) -> Object:
        """Merge a change into the object at a path."""
        return self.request("PATCH", path, change, content_type=MERGE)

    def apply(self, manifest: Object, namespace: str = "") -> str:
        """Apply an object on the server's side, whoever owns its fields.

        Args:
            manifest: the object.
            namespace: where it is, if it needs one and names none.

        Returns:
            its path.
        """
        path = self.path(manifest, namespace)
        query = {"fieldManager": "live-tests", "force": "true"}
        self.request("PATCH", path, manifest, query=query, content_type=APPLY)
        return path

    def define(self, manifest: Object) -> str:
        """Apply a CustomResourceDefinition and wait until its kind is served: a moment after it is established.

        Args:
            manifest: the definition, of one version.

        Returns:
            the path of the definition.
        """
        spec = manifest["spec"]
        path = self.apply(manifest)
        self.wait_for(path, lambda it: condition(it, "Established") == "True")
        served = f"/apis/{spec['group']}/{spec['versions'][0]['name']}"
        kind = spec["names"]["kind"]
        self.wait_for(served, lambda it: kind in [each["kind"] for each in it["resources"]])
        return path

    def path(self, manifest: Object, namespace: str = "") -> str:
        """Where an object is, or will be."""
        version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if kind not in self._resources.get(root, {}):
            self._resources[root] = {
                resource["kind"]: (resource["name"], resource["namespaced"])
                for resource in self.get(root)["resources"]
                if "/" not in resource["name"]
            }
        plural, namespaced = self._resources[root][kind]
        folder = f"namespaces/{metadata.get('namespace', namespace)}/" if namespaced else ""
        return f"{root}/{folder}{plural}/{metadata['name']}"

    def wait_for(self, path: str, holds: Callable[[Object], bool], timeout: float = PATIENCE_SECONDS) -> Object:
        """Wait until something holds of the object at a path; it need not be there yet.

        Args:
            path: of the object.
            holds: asked again and again.
            timeout: in seconds.

        Raises:
            TimeoutError: with the object as it was at the end.
        """
        found: Object = {}

        def check() -> bool:
            nonlocal found
            found = self.get(path) if self.exists(path) else {}
            return bool(found) and holds(found)

        wait_until(check, lambda: f"{path}: {json.dumps(found.get('status', found))}", timeout)
        return found

    def history(self, path: str, since: str) -> list[Object]:
        """What the object at a path has been, one state after the other.

        Args:
            path: of the object.
            since: the version after which the server is to tell it.
        """
        folder, _, name = path.rpartition("/")
        query = {"watch": "true", "resourceVersion": since, "timeoutSeconds": "1"}
        events = self.text("GET", folder, query=query | {"fieldSelector": f"metadata.name={name}"}).splitlines()
        return [json.loads(event)["object"] for event in events]

    def too_old(self, path: str, version: str) -> bool:
        """Whether the server says so to whoever wants to go on watching a list from a version."""
        query = {"watch": "true", "timeoutSeconds": "1", "resourceVersion": version}
        try:
            return '"code":410' in self.text("GET", path, query=query)
        except ApiError as error:  # of its cache, too
            return error.code == 410

    def wait_gone(self, path: str, timeout: float = PATIENCE_SECONDS) -> None:
        """Wait until there is no object at a path.

        Raises:
            TimeoutError: with the object as it was at the end.
        """
        wait_until(lambda: not self.exists(path), lambda: f"{path} is there: {json.dumps(self.get(path))}", timeout)

    def close(self) -> None:
        """Close all connections."""
        self._pool.clear()


def wait_until(holds: Callable[[], bool], told: Callable[[], str], timeout: float = PATIENCE_SECONDS) -> None:
    """Wait until something holds.

    Args:
        holds: asked again and again.
        told: what there is in its place.
        timeout: in seconds.

    Raises:
        TimeoutError: it does not.
    """
    until = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError(f"after {timeout:g} s: {told()}")
        time.sleep(POLL_SECONDS)


def condition(found: Object, kind: str) -> str:
    """The status of a condition: True, False, Unknown, or "" where the object has none of that type."""
    for entry in found.get("status", {}).get("conditions") or []:  # null, at first
        if entry["type"] == kind:
            return str(entry["status"])
    return ""


def held_back(found: Object) -> str:
    """Why the first container of a pod is held back; "" if it is not."""
    statuses = found["status"].get("containerStatuses") or [{}]
    return str(statuses[0].get("state", {}).get("waiting", {}).get("reason", ""))
