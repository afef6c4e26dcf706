"""The operations on mocks, in the order in which users read about them."""

from __future__ import annotations

import ext_sdk

from .start import mock_start
from .stop import mock_stop
from .verify import mock_verify

OPERATIONS = (
    ext_sdk.Operation(
        "mock-start",
        mock_start,
        {
            "name": "weather",
            "routes": [
                {
                    "name": "forecast",
                    "method": "GET",
                    "path": "/v1/cities/{city}/forecast",
                    "query": {"units": {"matches": "^(metric|imperial)$"}},
                    "answer": {"json": {"city": "$(path.city)", "units": "$(query.units)", "celsius": 21}},
                },
                {
                    "name": "report",
                    "method": "POST",
                    "path": "/v1/reports",
                    "answer": [{"status": 503, "times": 2}, {"status": 201, "json": {"id": "$(count)"}}],
                },
            ],
        },
    ),
    ext_sdk.Operation(
        "mock-verify",
        mock_verify,
        {"name": "weather", "calls": [{"route": "forecast", "atMost": 5}], "unmatched": 0},
    ),
    ext_sdk.Operation("mock-stop", mock_stop, {"name": "weather"}),
)
