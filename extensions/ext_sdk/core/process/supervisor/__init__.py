"""Contain commands: a fork server for each owner and one supervisor for each command.

This folder is a program of its own, run as `python -I -S` with a Unix stream socket as fd 0. Its owner
(`ext_sdk.core.process.spawner`) sends launches over it. Nothing else ever runs here and little is imported,
so that the first command waits some 15 ms for the program, and each command 2 ms for its supervisor.

    owner ── launches ──> fork server     subreaper of last resort: kills what a killed supervisor leaves
      │                     └─ supervisor     own session, subreaper: what the command starts stays below
      └─── control socket ───┘ └─ command     own session, the given streams, nothing else of its owner

The control socket is the lifeline too. When it ends, because the owner closed it, crashed or was killed,
the supervisor sends SIGTERM to the whole tree, waits for the grace period, sends SIGKILL until nothing is
left, and only then exits. Daemons (`setsid`, double fork) are in the tree all the same: orphans fall to the
nearest subreaper.

If the command kills its supervisor, the fork server kills what is left. If it kills the fork server as well, the
owner kills the command's session and all descendants of it.

Limits. A process that the user may not signal (setuid root) survives. So does, of a command that kills its supervisor
and the fork server, a daemon with a session of its own whose parent has ended; and all of a command that kills its
owner too. A user of its own for commands, or a container, prevents both. Without Linux there is neither subreaper nor
/proc: there the command's process group is all that is reached, and a daemon with a session of its own escapes.

On the control socket, one line each. From the supervisor: `watched` before anything is started (an owner that
has not seen it may safely try again); `pid N`, or `error ERRNO STAGE` when the command could not be started;
`exit STATUS` (negative: the signal that ended it); `left NAMES` (still running after the command's exit, and
stopped now); `stuck NAMES` (survive SIGKILL); `gone` (nothing is left). To it: `signal N` for the command alone,
and `stop N GRACE_SECONDS` for the tree.
"""
