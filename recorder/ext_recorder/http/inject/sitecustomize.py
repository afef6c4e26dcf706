"""Start the agent in a Python child. The interpreter imports this module first, because its folder is in PYTHONPATH.

The folder is then removed from the search path, and a `sitecustomize` of the child's machine is imported instead.
"""

import os
import sys

_NAME = "sitecustomize"
_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  (pathlib takes longer than all the rest)


def _import_original() -> None:
    ours = sys.modules[_NAME]
    sys.path[:] = [entry for entry in sys.path if entry != _HERE]
    del sys.modules[_NAME]
    try:
        __import__(_NAME)
    except ImportError as error:
        if error.name != _NAME:
            raise
    finally:
        sys.modules.setdefault(_NAME, ours)


__import__("ext_recorder_agent.start", fromlist=["start"]).start()
_import_original()
