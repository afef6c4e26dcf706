"""The fork server as a program: a Unix socket as fd 0, and `--group` where Linux is missing."""

import sys

if __name__ == "__main__":
    # Last on the path, so that nothing in this folder's parent can stand in for the standard library.
    sys.path.append(__file__.rpartition("/supervisor/")[0])
    from supervisor.fork_server import main  # type: ignore[import-not-found]

    main()
