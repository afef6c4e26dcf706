"""Entry point of the fork server: a Unix socket as fd 0, and `--group` on systems other than Linux."""

import sys

if __name__ == "__main__":
    # Last on the path, so that no module of the parent folder can replace one of the standard library.
    sys.path.append(__file__.rpartition("/supervisor/")[0])
    from supervisor.fork_server import main  # type: ignore[import-not-found]

    main()
