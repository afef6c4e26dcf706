"""Server of an extension: session, manifest, schemas, validation, line limit and command line.

Authors import nothing of it: `ext_sdk.boot` and `ext_sdk.Extension` start it.
"""
