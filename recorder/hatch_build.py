"""Build hook of both distributions of this tree: which files, dependencies and programs are in which one.

A checkout builds one wheel, gevals-extensions with everything, so that `pip install .` needs no second one. The package
index has two. ext-recorder contains `ext_recorder` and the part of `ext_sdk` that it imports, `ext_sdk.core`;
gevals-extensions contains everything else, and depends on ext-recorder of the same version. No file is in both.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

RECORDER = "ext-recorder"
PLACES = {"ext_recorder": "recorder/ext_recorder", "ext_sdk/core": "extensions/ext_sdk/core"}


class Version(MetadataHookInterface):
    """Version of ext-recorder: that of `ext_sdk.core`, which is elsewhere in its sdist."""

    def update(self, metadata: dict[str, Any]) -> None:
        places = (Path(self.root) / "ext_sdk/core", Path(self.root).parent / PLACES["ext_sdk/core"])
        text = next(place for place in places if place.is_dir()).joinpath("__init__.py").read_text()
        found = re.search(r'^__version__ = "(.+?)"', text, re.MULTILINE)
        assert found, text
        metadata["version"] = found[1]


class Files(BuildHookInterface[Any]):
    """Additional files and dependencies of a wheel or sdist."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if self.metadata.name == RECORDER:
            core = root.parent / PLACES["ext_sdk/core"]
            if version != "editable" and core.is_dir():  # in the sdist it is beside `ext_recorder`
                build_data["force_include"][str(core)] = "ext_sdk/core"
        elif self.target_name == "sdist" or (version != "editable" and (root / "PKG-INFO").is_file()):
            # What the package index has: an sdist, whose metadata tell the dependencies, and the wheel built from it.
            build_data["dependencies"].append(f"{RECORDER}=={self.metadata.version}")
            del self.metadata.core.scripts[RECORDER]
            del self.metadata.core.entry_points["pytest11"][RECORDER]
        elif version != "editable":
            build_data["force_include"] |= {str(root / source): place for place, source in PLACES.items()}
