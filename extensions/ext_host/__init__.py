"""ext-host: a host for eval tasks in mcpchecker's format, and servers of other hosts' protocols.

`files` reads Task, Eval and Agent files; `runner` runs them, with `steps`, extensions (`extension_process`) and agents
(`agents`). The package imports `ext_sdk` only: extensions and the recorder are programs that it starts.
"""
