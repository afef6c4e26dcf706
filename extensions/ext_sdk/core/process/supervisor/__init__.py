"""Program that contains commands: a fork server for each owner, and one supervisor for each command.

It runs as `python -I -S` with a Unix stream socket as fd 0. Its owner (`ext_sdk.core.process.spawner`) sends launches
over that. It imports little, so that the first command waits some 15 ms for the program, and each command 2 ms for its
supervisor; nothing else of the SDK runs here.

    owner ── launches ──> fork server     subreaper of last resort: kills what a killed supervisor leaves
      │                     └─ supervisor     own session, subreaper: what the command starts stays below
      └─── control socket ───┘ └─ command     own session, the given streams, nothing else of its owner

The control socket also shows that the owner lives. When it ends, because the owner closed it, crashed or was killed,
the supervisor sends SIGTERM to the complete tree, waits for the grace period, sends SIGKILL until nothing is left, and
only then exits. Daemons (`setsid`, double fork) are in the tree as well: orphans become children of the nearest
subreaper.

If the command kills its supervisor, the fork server kills what is left. If it kills the fork server as well, the
owner kills the command's session and all descendants of it.

Limits. A process that the user may not signal (setuid root) survives. So does, of a command that kills its supervisor
and the fork server, a daemon with a session of its own whose parent has ended; and all of a command that also kills its
owner. A user of its own for commands, or a container, prevents both. Without Linux there is neither subreaper nor
/proc: only the command's process group is contained, and a daemon with a session of its own escapes.

Lines on the control socket. From the supervisor: `watched` before anything is started (an owner that did not receive
it may safely try again); `pid N`, or `error ERRNO STAGE` if the command could not be started; `exit STATUS` (negative:
the signal that ended it); `left NAMES` (still running after the command's exit, and stopped now); `stuck NAMES`
(survive SIGKILL); `gone` (nothing is left). To it: `signal N` for the command alone, and `stop N GRACE_SECONDS` for
the tree.
"""
