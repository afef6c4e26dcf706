"""Recording of a whole command: the HTTP traffic of every process that it starts, in one folder.

session       record, replay or extend, and the summary
command       the process of the command with its worker: its access to the proxy, its signals and its end
folder        the files of a recording, made next to the folder and renamed at the end
wrap          copies of a host's configuration in which its children go through the recorder
children      starts of these children: a cassette for each
environment   the variables that lead programs to the proxy and make them trust it; node_proxy.cjs does this for Node
"""
