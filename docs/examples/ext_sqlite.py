"""SQLite databases in evals. Try it: `python ext_sqlite.py call query '{"database": "a.db", "sql": "select 1"}'`."""

import sqlite3
from contextlib import closing
from json import dumps

import ext_sdk
from ext_sdk.expect import Text, check_text, conclude
from ext_sdk.files import Workdir, os_errors

extension = ext_sdk.Extension("sqlite", version="1.0.0", description="Fills and checks SQLite databases")


def run(context: ext_sdk.Context, database: str, sql: str, *, change: bool) -> list[dict[str, object]]:
    files = Workdir(context.workdir)
    with os_errors("open", database):
        if change:
            files.append(database, b"", parents=True)  # creates it, inside of the workdir only
        address = f"{files.path(database).absolute().as_uri()}?mode={'rw' if change else 'ro'}"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.set_progress_handler(lambda: context.deadline.expired, 10_000)  # True interrupts the statement
            return [dict(row) for row in (connection.executescript if change else connection.execute)(sql)]
    except sqlite3.Error as error:
        raise ext_sdk.OperationFailed(f"{database}: {error}", error=f"{database}: {error}, in: {sql:.500}") from error


@extension.operation(example={"database": "shop.db", "sql": "create table lamps (name text)"})
def execute(context: ext_sdk.Context, database: str, sql: str) -> ext_sdk.Result:
    """Run a script of SQL statements; the database is created if it is missing."""
    run(context, database, sql, change=True)
    return ext_sdk.Result.ok(f"changed {database}")


@extension.operation(example={"database": "shop.db", "sql": "select name from lamps", "rows": {"jsonEquals": []}})
def query(context: ext_sdk.Context, database: str, sql: str, rows: Text) -> ext_sdk.Result:
    """Check the rows of a query, as JSON: an array of objects. The database cannot be changed."""
    found = dumps(run(context, database, sql, change=False), default=repr)
    checks = check_text(rows, found, where="rows", redact=context.secrets.redact, workdir=context.workdir)
    return conclude(checks, done=f"queried {database}", outputs={"rows": found})


if __name__ == "__main__":
    raise SystemExit(extension.run())
