"""A cluster to try things on, the same that live tests get.

python -m tests.live                   until Ctrl-C; prints what to export
python -m tests.live COMMAND…          for as long as the command runs, with KUBECONFIG set
python -m tests.live --cluster kind …  of this kind (or: control-plane), not the first to be had
"""

# ruff: noqa: T201 - people read what this prints

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys

from tests.live.cluster import WAYS, FoundCluster, NoCluster


def main() -> int:
    """Hold a cluster; the exit code is the command's."""
    parser = argparse.ArgumentParser(prog="python -m tests.live", description="A cluster to try things on.")
    parser.add_argument("--cluster", choices=WAYS[1:], default="", help="what it is made by")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="run for as long as this; else until Ctrl-C")
    told = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with FoundCluster("", told.cluster, lambda line: print(line, file=sys.stderr, flush=True)) as cluster:
            env = os.environ | {"KUBECONFIG": cluster.kubeconfig}
            if told.command:
                return subprocess.run(told.command, env=env, check=False).returncode
            print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)
            signal.pause()
    except NoCluster as reason:
        print(reason, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
