"""Command line: one table of options, read by a fast parser or, for help and errors, by click.

Commands are in `commands`. A command line that the fast parser reads never imports click: hosts start `record` and
`replay` for every task.
"""
