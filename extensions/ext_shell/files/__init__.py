"""Operations on files of the working directory; none reaches outside of it, whatever paths and symbolic links say."""

from __future__ import annotations

from ext_sdk.operation import Operation

from .assert_file import assert_file
from .copy import copy
from .make_temp import make_temp
from .read_file import read_file
from .remove import remove
from .write_file import write_file

OPERATIONS = (
    Operation("write-file", write_file, {"path": "notes/todo.txt", "content": "buy milk\n"}),
    Operation("read-file", read_file, {"path": "notes/todo.txt"}),
    Operation("assert-file", assert_file, {"path": "notes/todo.txt", "content": {"contains": "milk"}, "size": 9}),
    Operation("copy", copy, {"source": "notes", "destination": "backup"}),
    Operation("make-temp", make_temp, {"prefix": "build-"}),
    Operation("remove", remove, {"path": "backup", "recursive": True}),
)
