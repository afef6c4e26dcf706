"""ext-shell: run programs and look at files, as steps of an eval task.

`extension` lists the operations. `run` runs a command to its end; `background` starts, awaits and stops those that go
on. What both are given is in `arguments` and prepared in `command`; what they say is judged in `expectations`,
`capture` and told in `outcome`.
"""
