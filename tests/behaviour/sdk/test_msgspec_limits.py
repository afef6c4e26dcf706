"""What classes of arguments must not have, because of faults of msgspec."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import inspect

from ext_http.extension import extension as http
from ext_kubernetes.extension import extension as kubernetes
from ext_shell.extension import extension as shell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_sdk import Extension

EXTENSIONS = [http, kubernetes, shell]
CONTAINERS = (inspect.ListType, inspect.DictType, inspect.VarTupleType)


def unions_within(kind: inspect.Type, seen: set[object]) -> Iterator[inspect.UnionType]:
    if isinstance(kind, inspect.StructType):
        if kind.cls in seen:
            return
        seen.add(kind.cls)
    if isinstance(kind, inspect.UnionType):
        yield kind
    inner: list[inspect.Type] = []
    if isinstance(kind, inspect.StructType):
        inner = [field.type for field in kind.fields]
    elif isinstance(kind, inspect.UnionType):
        inner = list(kind.types)
    elif isinstance(kind, (inspect.ListType, inspect.VarTupleType)):
        inner = [kind.item_type]
    elif isinstance(kind, inspect.DictType):
        inner = [kind.key_type, kind.value_type]
    elif isinstance(kind, inspect.Metadata):
        inner = [kind.type]
    for one in inner:
        yield from unions_within(one, seen)


def bare(kind: inspect.Type) -> inspect.Type:
    return bare(kind.type) if isinstance(kind, inspect.Metadata) else kind


@pytest.mark.parametrize("extension", EXTENSIONS, ids=lambda extension: extension.name)
def test_no_string_with_a_pattern_may_also_be_a_list_or_a_map(extension: Extension) -> None:
    """Msgspec 0.22 frees memory it does not own when such a class goes: a crash at the end of the process."""
    for operation in extension.operations.values():
        for union in unions_within(inspect.type_info(operation.args_type), set()):
            kinds = [bare(kind) for kind in union.types]
            patterns = [kind.pattern for kind in kinds if isinstance(kind, inspect.StrType) and kind.pattern]
            assert not (patterns and any(isinstance(kind, CONTAINERS) for kind in kinds)), (operation.name, patterns)
