"""Build hooks of both distributions of this tree: files, dependencies, programs and README of each.

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
# The start of a link or picture in Markdown or HTML, and its relative address.
RELATIVE = re.compile(r'(\]\(|\b(?:href|src|srcset)=")(?![a-z]+:|#|/)([^)"\s]+)')
PLACES = {"ext_recorder": "recorder/ext_recorder", "ext_sdk/core": "extensions/ext_sdk/core"}


class Metadata(MetadataHookInterface):
    """Version of ext-recorder, and README of gevals-extensions with links that work on the package index."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        if metadata["name"] == RECORDER:  # the version is that of `ext_sdk.core`, which is elsewhere in its sdist
            places = (root / "ext_sdk/core", root.parent / PLACES["ext_sdk/core"])
            text = next(place for place in places if place.is_dir()).joinpath("__init__.py").read_text()
            found = re.search(r'^__version__ = "(.+?)"', text, re.MULTILINE)
            assert found, text
            metadata["version"] = found[1]
            return
        address = f"{metadata['urls']['Repository']}/KIND/v{metadata['version']}"

        def absolute(match: re.Match[str]) -> str:
            kind = "raw" if match[2].endswith((".png", ".svg")) else "blob"
            return f"{match[1]}{address.replace('KIND', kind)}/{match[2]}"

        text = RELATIVE.sub(absolute, (root / "README.md").read_text())
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


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
