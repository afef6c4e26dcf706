"""The clauses of spec 0, version 0.0.1, as data: where it says what, in short, and the check that asks.

`spec` clauses follow from the text of the specification, or of JSON-RPC 2.0, which it is based on. `host` clauses are
what real hosts do beyond it: an extension that breaks one conforms, and fails its users.

A sentence that binds the host alone has no clause, nor has one that can't be asked from outside ("Extension crash:
process exits non-zero").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .checks import durations, errors, execute, host_behaviour, initialize, log, one_shot, requests, shutdown, transport

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.conformance.target import Target

MODULES = (transport, requests, initialize, execute, log, shutdown, errors, one_shot, durations, host_behaviour)


@dataclass(frozen=True)
class Clause:
    """One thing that the specification, or a host, demands.

    Args:
        id: short and lasting; it names the test.
        section: of the specification, or the host behaviour.
        text: the demand, in short.
        check: raises Violation where it is not met, NotApplicable where it can't be asked.
    """

    id: str
    section: str
    text: str
    check: Callable[[Target], None]

    @property
    def level(self) -> str:
        """`spec` or `host`."""
        return self.id.partition(":")[0]


def clauses(level: str, section: str, *rows: tuple[str, str, Callable[[Target], None]]) -> tuple[Clause, ...]:
    """The clauses of one section."""
    return tuple(Clause(f"{level}:{id}", section, text, check) for id, text, check in rows)


SPEC = (
    *clauses(
        "spec",
        "Transport",
        ("line", "Each message is one line, ended by a line feed.", transport.each_message_is_one_line),
        ("version-2", "Messages are JSON-RPC 2.0.", transport.every_message_says_version_2),
        ("utf-8", "The encoding is UTF-8.", transport.text_is_utf_8_in_both_directions),
        ("escapes", "Escaped text is the same text.", transport.escaped_text_is_the_same_text),
        (
            "stdout-is-the-wire",
            "Output goes to stdout, debug logs to stderr: stdout carries messages alone.",
            transport.stdout_carries_responses_and_log_notifications_alone,
        ),
        ("pieces", "A message ends at its line feed, however it is cut.", transport.a_message_may_come_in_any_pieces),
        ("one-write", "Several messages may come in one write.", transport.messages_in_one_write_are_all_answered),
        (
            "white-space",
            "White space around JSON is not part of it.",
            transport.white_space_around_a_message_is_no_part_of_it,
        ),
    ),
    *clauses(
        "spec",
        "JSON-RPC 2.0, Request object",
        ("id", "A response has the id of its request, as it was.", requests.an_id_comes_back_as_it_was),
        (
            "id-null",
            "null is an id like any other, if a discouraged one.",
            requests.an_id_that_is_null_is_answered_with_null,
        ),
        ("id-type", "An id is a string, a number or null.", requests.an_id_of_another_type_is_an_invalid_request),
        ("one-response", "Every request gets one response.", requests.every_request_gets_one_response),
        ("notification", "A notification gets none.", requests.a_notification_gets_no_response),
        ("several", "Several requests may be open at once.", requests.several_requests_are_answered_each_by_its_id),
    ),
    *clauses(
        "spec",
        "Lifecycle",
        ("silence", "The host speaks first.", transport.nothing_is_written_before_the_first_request),
        ("goes-on", "More execute requests may come, until shutdown.", shutdown.a_session_goes_on_until_shutdown),
    ),
    *clauses(
        "spec",
        "Initialize, Request",
        ("initialize", "initialize returns the manifest.", initialize.initialize_is_answered_with_the_manifest),
        ("version-required", "protocolVersion is required, a string.", initialize.the_protocol_version_is_required),
        (
            "version-mismatch",
            "protocolVersion is what the host supports: another one is not agreed to.",
            initialize.another_protocol_version_is_not_agreed_to,
        ),
        ("config-optional", "config is optional.", initialize.the_configuration_may_be_left_out_or_empty),
        ("config", "config is the extension's own.", initialize.a_configuration_of_its_own_is_accepted),
        ("config-type", "config is an object.", initialize.a_configuration_that_is_no_object_is_refused),
    ),
    *clauses(
        "spec",
        "Initialize, Manifest Fields",
        ("name", "name is required, a string.", initialize.the_manifest_has_a_name),
        ("semver", "version is required, a semantic version.", initialize.the_manifest_has_a_semantic_version),
        (
            "version-supported",
            "protocolVersion is required, the version supported.",
            initialize.the_manifest_names_the_protocol_version,
        ),
        ("description", "description is a string, if there.", initialize.a_description_is_text),
        ("requires", "requires is an array of objects with a command.", initialize.requirements_name_a_command),
        ("operations", "operations maps names to operations.", initialize.the_manifest_maps_operations_by_name),
    ),
    *clauses(
        "spec",
        "Initialize, Operation Object",
        ("params", "params is required: the schema of an object.", initialize.every_operation_has_params),
        ("schema", "params is valid JSON Schema.", initialize.params_are_valid_json_schema),
        ("required-described", "required names described arguments.", initialize.required_arguments_are_described),
        ("defaults", "A default fits the schema of its argument.", initialize.defaults_fit_their_own_schema),
    ),
    *clauses(
        "spec",
        "Execute, Params Fields",
        ("operation-required", "operation is required.", execute.the_operation_is_required),
        (
            "args-context",
            "A request that lacks args or context is answered.",
            execute.a_request_without_args_or_context_is_answered,
        ),
        ("args-type", "args and context are objects.", execute.args_and_context_of_another_type_are_refused),
    ),
    *clauses(
        "spec",
        "Execute, Context Object",
        ("workdir", "Relative paths are resolved from workdir.", execute.relative_paths_are_meant_from_the_workdir),
        ("phase", "phase is setup, verify or cleanup.", execute.every_phase_is_accepted),
        ("env", "env holds environment variables from the task.", execute.the_environment_of_the_task_is_used),
        ("timeout", "timeout is the maximum execution time.", execute.a_timeout_ends_the_operation),
        ("agent", "agent tells prompt and output in verify.", execute.the_agent_is_known_in_verify),
        ("agent-ignored", "agent may be there unasked.", execute.an_agent_is_accepted_by_operations_that_ask_for_none),
    ),
    *clauses(
        "spec",
        "Execute, Result Fields",
        ("success", "success is true where the operation succeeded.", execute.an_operation_that_succeeds_says_so),
        ("failure", "A failed operation is a result with success: false.", execute.an_operation_that_fails_is_a_result),
        ("message", "message and error are strings.", execute.message_and_error_are_text),
        ("error-when", "error is for success: false.", execute.an_error_is_given_where_success_is_false_alone),
        ("outputs", "outputs map strings to strings.", execute.outputs_are_text_by_name),
        (
            "result-members",
            "A result has the members named.",
            execute.a_result_has_no_members_that_the_spec_does_not_name,
        ),
    ),
    *clauses(
        "spec",
        "Log",
        ("log", "log is a notification: no id.", log.a_log_is_a_notification),
        ("log-during", "Logs come during execution.", log.logs_come_before_the_result),
        ("log-level", "level is debug, info, warn or error.", log.a_log_has_a_known_level),
        ("log-message", "message is required, a string.", log.a_log_has_a_message),
        ("log-data", "data is an object, if there.", log.data_of_a_log_is_an_object),
    ),
    *clauses(
        "spec",
        "Shutdown",
        ("shutdown", "shutdown is answered with {}.", shutdown.shutdown_is_answered_with_an_empty_object),
        ("exit", "The extension exits after it.", shutdown.after_shutdown_the_process_exits_with_0),
        ("shutdown-params", "params may be left out (JSON-RPC 2.0).", shutdown.shutdown_needs_no_params),
    ),
    *clauses(
        "spec",
        "Error Handling",
        ("parse-error", "Invalid JSON is -32700.", errors.what_is_no_json_is_a_parse_error),
        ("parse-error-utf-8", "Invalid UTF-8 is no JSON.", errors.broken_utf_8_is_a_parse_error),
        (
            "invalid-request",
            "Missing required fields are -32600.",
            errors.json_that_is_no_request_is_an_invalid_request,
        ),
        ("unknown-method", "An unknown method is -32601.", errors.an_unknown_method_is_an_error),
        ("unknown-operation", "An unknown operation is -32601.", execute.an_unknown_operation_is_an_error),
        ("unknown-named", "The message names it.", errors.an_error_names_what_was_unknown),
        ("missing-argument", "A missing required argument is -32602.", execute.a_missing_argument_is_refused),
        ("argument-type", "An argument of another type is -32602.", execute.an_argument_of_another_type_is_refused),
        ("params-type", "params of another type are an error.", errors.params_of_another_type_are_an_error),
        (
            "error-object",
            "An error has a code of the table and a message.",
            errors.an_error_has_a_code_of_the_table_and_a_message,
        ),
        ("either", "A response is a result or an error.", errors.an_answer_is_a_result_or_an_error_never_both),
    ),
    *clauses(
        "spec",
        "One-Shot Mode",
        (
            "one-shot",
            "A single execute request is processed, its result written, and the process exits.",
            one_shot.execute_without_initialize_is_answered_and_the_process_exits,
        ),
        ("one-shot-error", "An error is an answer too.", one_shot.errors_are_answered_too),
    ),
    *clauses(
        "spec",
        "Duration Format",
        ("timeout-forms", "timeout takes every form of Go.", durations.every_form_of_a_timeout_is_accepted),
        ("timeout-other", "and no other.", durations.a_timeout_of_another_form_is_refused),
        ("duration-forms", "So do arguments.", durations.an_argument_takes_every_form),
        ("duration-other", "and no other.", durations.an_argument_of_another_form_is_refused),
    ),
)

HOST = (
    *clauses(
        "host",
        "reads lines of 65,535 bytes at most",
        ("line-limit", "No result is longer.", host_behaviour.no_line_is_longer_than_hosts_read),
        ("manifest-limit", "Nor is the manifest.", host_behaviour.the_manifest_fits_a_line),
        ("error-limit", "Nor is an error about a long name.", host_behaviour.an_error_about_a_long_name_fits_a_line),
    ),
    *clauses(
        "host",
        "sends what the spec forbids",
        ("args-null", "args may be null.", host_behaviour.args_may_be_null),
        ("phase-empty", "phase may be empty or missing.", host_behaviour.the_phase_may_be_empty_or_missing),
        ("initialize-twice", "initialize may come twice.", initialize.a_second_initialize_does_no_harm),
        (
            "initialize-again",
            "After another version the right one may be tried.",
            initialize.after_another_protocol_version_the_right_one_is_still_answered,
        ),
        ("shutdown-first", "shutdown may come first.", shutdown.shutdown_before_initialize_is_answered),
        ("blank-line", "A blank line may come.", transport.a_blank_line_does_no_harm),
        ("long-line", "A line may have any length.", transport.a_long_line_is_read),
        ("nesting", "JSON may be nested deeply.", errors.deep_nesting_is_an_error_like_any_other),
        ("long-number", "A number may have any length.", errors.a_number_of_any_length_is_an_error_at_most),
        (
            "unfinished-line",
            "The last line may lack its end.",
            host_behaviour.an_unfinished_line_at_the_end_of_stdin_does_no_harm,
        ),
        ("no-traceback", "Bad input gets no traceback.", host_behaviour.stderr_tells_no_traceback_about_bad_input),
    ),
    *clauses(
        "host",
        "sends the next call while one runs, and gives each 30 s",
        (
            "concurrent",
            "A fast call does not wait for a slow one.",
            host_behaviour.a_fast_call_does_not_wait_for_a_slow_one,
        ),
        ("many", "Thousands may be open at once.", requests.many_requests_may_be_open_at_once),
        ("limited", "Without a phase an operation is limited.", host_behaviour.without_a_phase_an_operation_is_limited),
        (
            "shutdown-at-once",
            "shutdown does not wait for an operation.",
            shutdown.shutdown_does_not_wait_for_a_running_operation,
        ),
    ),
    *clauses(
        "host",
        "validates by the schema alone, and shows message and error alone",
        ("typos", "An unknown argument is -32602.", host_behaviour.an_unknown_argument_is_refused),
        ("typos-schema", "Schemas have additionalProperties: false.", host_behaviour.schemas_refuse_unknown_arguments),
        ("re2", "A pattern is RE2.", host_behaviour.patterns_are_re2),
        ("output-keys", "Keys of outputs have no dots.", host_behaviour.keys_of_outputs_have_no_dots),
        ("failure-told", "A failure has message and error.", host_behaviour.a_failure_tells_why),
    ),
    *clauses(
        "host",
        "calls once from a shell",
        (
            "one-shot-open",
            "An answer does not wait for the end of stdin.",
            one_shot.an_answer_does_not_wait_for_the_end_of_stdin,
        ),
        (
            "one-shot-config",
            "Configuration by the command line.",
            one_shot.a_configuration_can_be_given_on_the_command_line,
        ),
    ),
    *clauses(
        "host",
        "ends in many ways",
        ("eof", "The end of stdin ends the process.", host_behaviour.the_end_of_stdin_ends_the_process),
        ("sigterm", "SIGTERM ends the process.", host_behaviour.sigterm_ends_the_process),
        (
            "sigterm-busy",
            "while an operation runs, too.",
            host_behaviour.sigterm_ends_the_process_while_an_operation_runs,
        ),
        ("deaf", "A host that does not listen ends it.", host_behaviour.a_host_that_does_not_listen_ends_the_process),
        ("kin-shutdown", "shutdown leaves no process behind.", host_behaviour.shutdown_leaves_no_process_behind),
        ("kin-eof", "Nor does the end of stdin.", host_behaviour.the_end_of_stdin_leaves_no_process_behind),
        ("kin-sigterm", "Nor does SIGTERM.", host_behaviour.sigterm_leaves_no_process_behind),
        ("kin-sigkill", "Nor does SIGKILL.", host_behaviour.sigkill_leaves_no_process_behind),
    ),
)

CLAUSES = (*SPEC, *HOST)
