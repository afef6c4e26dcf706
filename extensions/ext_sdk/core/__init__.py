"""Code that the recorder shares with the SDK: wire, redaction, processes, stdio and the words of the protocol.

`ext_recorder` imports this folder of `ext_sdk` and nothing else. Nothing here imports the rest of the SDK.
"""

__version__ = "0.1.0"  # of the distribution; set only here
