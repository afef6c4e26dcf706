"""Does an extension conform? The clauses of spec 0 as data, each with the check that asks it of a running extension.

`host` talks to the extension, and shares no code with `ext_sdk`; `target` says what may be asked of it; `clauses` is
the list; `checks` has one module a section; `running` asks them all.
"""
