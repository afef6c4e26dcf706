"""Commands that cannot outlive their owner, and their input and output.

`ext_sdk.process` has the public names; `supervisor` is the program that runs the commands.
"""
