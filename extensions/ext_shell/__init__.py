"""ext-shell: run programs and check files, as steps of an eval task.

`extension` lists the operations. `command` prepares a command from `args`, `runner` runs it to its end and `background`
keeps it running; `expectations` checks it, and `result` reports it.
"""
