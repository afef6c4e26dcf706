"""Does an extension conform? What specifications demand, clause by clause, asked of a running child.

Spec 0: `clauses` is the list, `checks` has one module a section, `host` talks to the extension, and shares no code with
`ext_sdk`; `target` says what may be asked of it.

The others: `conversations` are what is said, as data; `conversing` says it, over an `exchange` of messages by `links`;
`ruled` holds it against the rules that lint has, too.

`running` asks them all.
"""
