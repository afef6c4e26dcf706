"""Commands that cannot outlive their extension, and their input and output.

`start_piped` starts a `Command` by a `Spawner` and returns a `Child`: its process tree, under a supervisor. A `Pump`
moves its input and output in the thread that waits for it; `Output` keeps the output in bounded memory.
"""

from ext_sdk.core.process.child import Child, ExitStatus, signal_name
from ext_sdk.core.process.errors import CommandNotFound, CommandNotStarted, ProcessError, SupervisionLost
from ext_sdk.core.process.output import LineSplitter, Output
from ext_sdk.core.process.pump import Pump, Sink, start_piped
from ext_sdk.core.process.spawner import Command, Spawner, find_executable

__all__ = [
    "Child",
    "Command",
    "CommandNotFound",
    "CommandNotStarted",
    "ExitStatus",
    "LineSplitter",
    "Output",
    "ProcessError",
    "Pump",
    "Sink",
    "Spawner",
    "SupervisionLost",
    "find_executable",
    "signal_name",
    "start_piped",
]
