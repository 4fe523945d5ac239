"""Becomes another program with an environment of its own: ``python -S -I outside.py FILE``.

tmux starts it when we run inside of a polecat. What tmux starts has the session's environment, the polecat's marker in
it, and what stands on tmux's command line is visible to everybody; so the program and its environment, keys included,
come in a private file, ``{"argv", "environment", "log"}``, that is removed at once.
"""

import json
import os
import sys

with open(sys.argv[1]) as file:
    launch = json.load(file)
os.unlink(sys.argv[1])
log = os.open(launch["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
os.dup2(log, 1)
os.dup2(log, 2)
os.close(log)
os.chdir("/")
os.execve(launch["argv"][0], launch["argv"], launch["environment"])
