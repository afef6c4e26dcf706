"""Deferred imports of the libraries that send a request.

`import kubernetes.dynamic` first runs the `__init__` of `kubernetes`, and that imports informers, leader election,
OpenID clients, pydantic and, in versions 35 and 36, the 800 typed models: some 250 to 400 ms, of which a request needs
a quarter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# See ext_sdk.deferred, also for the second.
MODULES: Mapping[str, Mapping[str, str]] = {
    "dateutil": {},
    "dateutil.parser": {},
    "kubernetes": {},
    "kubernetes.client": {
        "ApiClient": "kubernetes.client.api_client",
        "Configuration": "kubernetes.client.configuration",
    },
    "kubernetes.client.api_response": {},
    "kubernetes.client.models": {},
    "kubernetes.dynamic": {"DynamicClient": "kubernetes.dynamic.client"},
    "kubernetes.dynamic.discovery": {},
    "kubernetes.utils": {},
    "kubernetes.utils.retry": {},
    "kubernetes.watch": {},
    "multiprocessing": {"cpu_count": "os"},
    "multiprocessing.pool": {},
    "oauthlib.oauth2": {},
    "pprint": {},
    "pydantic": {},
    "requests_oauthlib": {},
    "urllib3.http2": {},
    "yaml": {
        "AliasEvent": "yaml.events",
        "CSafeLoader": "yaml.cyaml",
        "CollectionEndEvent": "yaml.events",
        "CollectionStartEvent": "yaml.events",
        "MappingNode": "yaml.nodes",
        "MarkedYAMLError": "yaml.error",
        "ScalarNode": "yaml.nodes",
        "YAMLError": "yaml.error",
    },
    "yaml.composer": {},
    "yaml.emitter": {},
    "yaml.parser": {},
    "yaml.reader": {},
    "yaml.scanner": {},
}
USED_LATER = frozenset(
    {
        ("dateutil.parser", "parse"),
        ("kubernetes.client.api_response", "ApiResponse"),
        ("kubernetes.client.api_response", "T"),
        ("kubernetes.dynamic.discovery", "EagerDiscoverer"),
        ("kubernetes.dynamic.discovery", "LazyDiscoverer"),
        ("kubernetes.utils.retry", "is_retry_after_response"),
        ("kubernetes.utils.retry", "on_retry_after_error"),
        ("kubernetes.utils.retry", "retry_after_backoff"),
        ("multiprocessing.pool", "ThreadPool"),
        ("pprint", "pformat"),
        ("pydantic", "SecretStr"),
        ("requests_oauthlib", "OAuth2Session"),
        ("yaml.composer", "ComposerError"),
        ("yaml.emitter", "EmitterError"),
        ("yaml.parser", "ParserError"),
        ("yaml.reader", "ReaderError"),
        ("yaml.scanner", "ScannerError"),
    }
)
