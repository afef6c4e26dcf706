"""Tests of ext_sqlite.py in process: `pytest docs/examples/test_ext_sqlite.py`."""

from pathlib import Path

import pytest

from docs.examples.ext_sqlite import extension
from ext_sdk.testing import Host, call

LAMPS = {"database": "shop.db", "sql": "create table lamps (name text, price int); insert into lamps values ('a', 7)"}


def test_rows_are_compared_as_json(tmp_path: Path) -> None:
    with Host(extension, workdir=tmp_path) as host:
        assert host.call("execute", LAMPS).success
        query = {"database": "shop.db", "sql": "select * from lamps"}
        assert host.call("query", query | {"rows": {"jsonEquals": [{"name": "a", "price": 7}]}}).success
        result = host.call("query", query | {"rows": {"jsonEquals": [{"name": "a", "price": 8}]}})
        assert not result.success
        assert "8" in result.error


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"sql": "selec"}, 'shop.db: near "selec": syntax error, in: selec'),
        ({"sql": "delete from lamps"}, "attempt to write a readonly database"),
        ({"database": "missing.db"}, "missing.db"),
        ({"database": "../shop.db"}, "not a path inside the working directory"),
    ],
)
def test_what_cannot_be_queried_fails_with_the_reason(tmp_path: Path, change: dict[str, str], error: str) -> None:
    call(extension, "execute", LAMPS, workdir=tmp_path)
    query = {"database": "shop.db", "sql": "select 1", "rows": "[]"} | change
    assert error in call(extension, "query", query, workdir=tmp_path).error


def test_a_statement_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    call(extension, "execute", LAMPS, workdir=tmp_path)
    query = {"database": "shop.db", "sql": endless, "rows": "[]"}
    assert "interrupted" in call(extension, "query", query, workdir=tmp_path, timeout="300ms").error
