"""Refused arguments, held against the error rule: see `ext_sdk.result`."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from jsonschema import Draft202012Validator

from ext_sdk.core.wire.errors import RpcError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_sdk import Extension, Result


def refusal(extension: str | Extension, operation: str, args: object, answer: dict[str, object]) -> str:
    """Return the text of a refusal.

    The answer must be the error -32602 if the JSON Schema of the operation refuses the arguments, and a failed result
    if it does not.

    Args:
        extension: the extension, or the name of the package that has it in its module `extension`.
        operation: the name.
        args: as they were sent.
        answer: the whole response, or its members `result` and `error`.
    """
    manifest = _manifest(extension) if isinstance(extension, str) else extension.manifest()
    operations = manifest["operations"]
    assert isinstance(operations, dict)
    if not Draft202012Validator(operations[operation]["params"]).is_valid({} if args is None else args):
        error = answer.get("error")
        assert isinstance(error, dict), f"the schema refuses {args!r:.200}, and the call is answered with {answer}"
        assert error["code"] == -32602, answer
        return str(error["message"])
    result = answer.get("result")
    assert isinstance(result, dict), f"the schema does not refuse {args!r:.200}, and the call ends in {answer}"
    assert result["success"] is False, answer
    assert result["message"].startswith(f"{operation}: "), answer
    assert result["error"] == result["message"], answer
    return str(result["error"])


def answered(call: Callable[[], Result]) -> dict[str, object]:
    """Return the answer to a call within this process, as `refusal` takes it."""
    try:
        result = call()
    except RpcError as error:
        return {"error": {"code": error.code, "message": error.message}}
    return {"result": {"success": result.success, "message": result.message, "error": result.error}}


@lru_cache
def _manifest(package: str) -> dict[str, object]:
    extension: Extension = import_module(f"{package}.extension").extension
    return extension.manifest()
