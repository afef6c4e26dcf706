"""The Job that `run-job` makes: of an image, or of a manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

import ext_sdk

from .manifests import NoObject, NotYaml, flat, objects_of
from .objects import members, text

if TYPE_CHECKING:
    from .jobs import RunJob
    from .manifests import Object


def job_of(args: RunJob) -> Object:
    """The manifest of the job. Raises OperationFailed where one is given that is not of a job."""
    name = {"name": args.name} if args.name else {}
    if args.manifest is UNSET:
        container: Object = {"name": "main", "image": args.image}
        env: list[object] = [{"name": key, "value": value} for key, value in args.env.items()]
        parts = (("command", args.command), ("args", args.arguments), ("env", env))
        container |= {key: value for key, value in parts if value}
        pod: Object = {"restartPolicy": "Never", "containers": [container]}
        pod |= {"serviceAccountName": args.service_account} if args.service_account else {}
        spec = {"backoffLimit": args.backoff_limit, "template": {"spec": pod}}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": name or {"generateName": "job-"}, "spec": spec}
    try:
        given = args.manifest
        found = (
            [one for one, _ in objects_of(given, "manifest")] if isinstance(given, str) else [*flat(given, "manifest")]
        )
    except (NotYaml, NoObject) as error:
        raise ext_sdk.OperationFailed("the manifest can't be used", error=str(error)) from error
    kinds = [f"{text(one, 'apiVersion')} {text(one, 'kind')}" for one in found]
    if kinds != ["batch/v1 Job"]:
        raise ext_sdk.InvalidArgs("manifest", f"expected one Job of batch/v1, found {', '.join(kinds) or 'nothing'}")
    metadata = members(found[0], "metadata") | name
    given_name = {} if {"name", "generateName"} & metadata.keys() else {"generateName": "job-"}
    return found[0] | {"metadata": metadata | given_name}
