"""Initialize: the first request, and the manifest in its response."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ext_recorder.conformance.raw_host import NotApplicable, Violation, json_object, text
from ext_recorder.conformance.target import PROTOCOL_VERSION, clauses_of_section, error_code, still_serves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_recorder.conformance.target import Target

# semver.org, 2.0.0: three numbers without leading zeros, a pre-release, a build.
SEMANTIC_VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
)


def manifest(target: Target) -> dict[str, object]:
    with target.started() as host:
        return target.initialize(host)


def operations(target: Target) -> Iterator[tuple[str, dict[str, object]]]:
    with target.started() as host:
        yield from target.operations(host).items()


clause = clauses_of_section("spec", "Initialize, Request")


@clause("initialize", "initialize returns the manifest.")
def initialize_is_answered_with_the_manifest(target: Target) -> None:
    with target.started() as host:
        response = host.call("initialize", {"protocolVersion": PROTOCOL_VERSION})
        first = host.lines[0].message
    if first != response or "result" not in response:
        raise Violation(f"expected the manifest as the first message, found {first!r:.300}")


@clause("version-required", "protocolVersion is required, a string.")
def the_protocol_version_is_required(target: Target) -> None:
    with target.started() as host:
        error_code(host.call("initialize", {}), -32602, -32600)
        error_code(host.call("initialize", {"protocolVersion": 1}), -32602, -32600)


@clause("version-mismatch", "protocolVersion is the version of the host: another version is not accepted.")
def another_protocol_version_is_not_agreed_to(target: Target) -> None:
    with target.started() as host:
        response = host.call("initialize", {"protocolVersion": "99.0.0"})
    if "result" not in response:
        error_code(response, -32602, -32600)
        return
    named = json_object(response["result"], "the result").get("protocolVersion")
    if named != PROTOCOL_VERSION:
        raise Violation(f"expected an error, or a manifest for {PROTOCOL_VERSION}; found one for {named!r}")


@clause("config-optional", "config is optional.")
def the_configuration_may_be_left_out_or_empty(target: Target) -> None:
    configurations: tuple[object, ...] = (None, {})
    for config in configurations:
        with target.session(config) as host:
            still_serves(target, host)


@clause("config", "The extension defines the members of config.")
def a_configuration_of_its_own_is_accepted(target: Target) -> None:
    with target.session(target.profile.entry("config")["value"]) as host:
        still_serves(target, host)


@clause("config-type", "config is an object.")
def a_configuration_that_is_no_object_is_refused(target: Target) -> None:
    with target.started() as host:
        params = {"protocolVersion": PROTOCOL_VERSION, "config": ["a", "list"]}
        error_code(host.call("initialize", params), -32602, -32600)


clause = clauses_of_section("spec", "Initialize, Manifest Fields")


@clause("name", "name is required, a string.")
def the_manifest_has_a_name(target: Target) -> None:
    if not text(manifest(target).get("name"), "name"):
        raise Violation("name is empty")


@clause("semver", "version is required, a semantic version.")
def the_manifest_has_a_semantic_version(target: Target) -> None:
    version = text(manifest(target).get("version"), "version")
    if not SEMANTIC_VERSION.fullmatch(version):
        raise Violation(f"expected a semantic version such as 1.2.0, found {version!r}")


@clause("version-supported", "protocolVersion is required, the version supported.")
def the_manifest_names_the_protocol_version(target: Target) -> None:
    version = text(manifest(target).get("protocolVersion"), "protocolVersion")
    if version != PROTOCOL_VERSION:
        raise Violation(f"expected {PROTOCOL_VERSION}, found {version!r}")


@clause("description", "description, if present, is a string.")
def a_description_is_text(target: Target) -> None:
    text(manifest(target).get("description", ""), "description")
    for name, operation in operations(target):
        text(operation.get("description", ""), f"description of {name}")


@clause("requires", "requires is an array of objects with a command.")
def requirements_name_a_command(target: Target) -> None:
    requires = manifest(target).get("requires", [])
    if not isinstance(requires, list):
        raise Violation(f"requires must be an array, found {requires!r:.200}")
    for requirement in requires:
        if not text(json_object(requirement, "a requirement").get("command"), "command"):
            raise Violation("a requirement has an empty command")


@clause("operations", "operations maps names to operations.")
def the_manifest_maps_operations_by_name(target: Target) -> None:
    if not list(operations(target)):
        raise Violation("the manifest has no operation")


clause = clauses_of_section("spec", "Initialize, Operation Object")


@clause("params", "params is required: the schema of an object.")
def every_operation_has_params(target: Target) -> None:
    for name, operation in operations(target):
        params = json_object(operation.get("params"), f"params of {name}")
        if params.get("type") != "object":
            raise Violation(
                f"params of {name}: `args` is an object, expected type object, found {params.get('type')!r}"
            )


@clause("schema", "params is valid JSON Schema.")
def params_are_valid_json_schema(target: Target) -> None:
    try:
        import jsonschema
    except ImportError:
        raise NotApplicable("the package jsonschema is not installed") from None
    for name, operation in operations(target):
        try:
            jsonschema.Draft202012Validator.check_schema(json_object(operation.get("params"), name))
        except jsonschema.SchemaError as error:
            raise Violation(f"params of {name}: {error.message} at {error.json_path}") from None


@clause("required-described", "required lists arguments that properties describes.")
def required_arguments_are_described(target: Target) -> None:
    for name, operation in operations(target):
        params = json_object(operation["params"], name)
        required = params.get("required", [])
        properties = json_object(params.get("properties", {}), f"properties of {name}")
        if not isinstance(required, list) or not set(required) <= properties.keys():
            raise Violation(f"{name} requires {required!r}, and describes {', '.join(properties)}")


@clause("defaults", "A default is valid for the schema of its argument.")
def defaults_fit_their_own_schema(target: Target) -> None:
    try:
        import jsonschema
    except ImportError:
        raise NotApplicable("the package jsonschema is not installed") from None
    for name, operation in operations(target):
        params = json_object(operation["params"], name)
        validator = jsonschema.Draft202012Validator(params)  # references within it start at its root
        for argument, schema in json_object(params.get("properties", {}), name).items():
            if isinstance(schema, dict) and "default" in schema and schema["default"] is not None:
                errors = list(validator.evolve(schema=schema).iter_errors(schema["default"]))
                if errors:
                    raise Violation(f"the default of {name}.{argument} is refused by its schema: {errors[0].message}")
