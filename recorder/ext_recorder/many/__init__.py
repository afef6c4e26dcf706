"""Many cassettes: named by files, folders, patterns and addresses, worked on in parallel, shared out among machines.

    names      which cassettes the words of a command line mean
    shards     the part of them that is this machine's: `--shard 2/3`
    remote     cassettes at addresses of other file systems, by fsspec
    pool       one piece of work a cassette, in several processes
    progress   how far that is: a bar on a terminal, nothing where there is none

A command uses them so (`work` is called in another process: a function at the top of a module, or a partial of one):

    for outcome in each(chosen(values), work, jobs=jobs(values)):
        …
"""
