"""The names of our commands. This module imports nothing: what is not ours is handed over within milliseconds."""

# Each command stands in a module of its own that is imported only when it is called: `gt done` inside a polecat must
# not pay for rich tables and HTTP clients.
COMMANDS: dict[str, tuple[str, str]] = {
    "ask": ("witness.cli.distill:ask", "put a question to what a sidecar knows"),
    "attach": ("witness.cli.session:attach", "show a polecat's session in this terminal"),
    "completion": ("witness.cli.completion:completion", "what makes bash, zsh or fish complete our commands"),
    "config": ("witness.cli.config:config", "the settings: show, explain, schema, set"),
    "diff": ("witness.cli.worktree:diff", "what a polecat has changed in its worktree"),
    "demo": ("witness.cli.demo:demo", "the main job, shown in a scratch town"),
    "distill": ("witness.cli.distill:distill", "ask a narrow question of a huge file"),
    "doctor": ("witness.cli.doctor:doctor", "what was found here, what is wrong, how to mend it"),
    "done": ("witness.cli.done:done", "inside a polecat: the work is finished, end the group"),
    "follow": ("witness.cli.follow:follow", "sidecars for a session of Claude Code that you have started yourself"),
    "help": ("witness.cli.help:help_", "the documents, and the help of each command"),
    "hooks": ("witness.cli.hooks:hooks", "the hooks in the agent's client: install, uninstall, status"),
    "init": ("witness.cli.init:init", "make a standalone town"),
    "list": ("witness.cli.polecat:list_polecats", "the same as gt polecat list"),
    "logs": ("witness.cli.logs:logs", "what happened in the town, or to one polecat"),
    "mcp": ("witness.cli.mcp:mcp", "serve distill and ask to an agent over MCP"),
    "key": ("witness.cli.key:key", "keep and try the API key of sidecars that ask a model"),
    "memory": ("witness.cli.memory:memory", "what an agent remembers from session to session"),
    "molecule": ("witness.cli.molecule:molecule", "lint, show and resolve molecules"),
    "nudge": ("witness.cli.session:nudge", "send a polecat a line of text"),
    "party": ("witness.cli.party:party", "several agents with their memories around one topic"),
    "peek": ("witness.cli.session:peek", "read a polecat's pane"),
    "polecat": ("witness.cli.polecat:polecat", "spawn, list and nuke polecats with their sidecars"),
    "prompt": ("witness.cli.prompt:prompt", "render, parse and lint prompts made of typed blocks"),
    "ps": ("witness.cli.polecat:list_polecats", "the same as gt polecat list"),
    "sidecar": ("witness.cli.sidecar:sidecar", "types, lint, trust, log, costs, replay and eval of sidecars"),
    "state": ("witness.cli.state:state", "what every polecat does, and which one waits for you"),
    "stop": ("witness.cli.polecat:nuke", "the same as gt polecat nuke"),
    "top": ("witness.cli.top:top", "every polecat live, those that need you first"),
    "uninstall": ("witness.cli.uninstall:uninstall", "end all of this town, and take us away from it"),
    "worktree": ("witness.cli.worktree:worktree", "the worktrees of polecats: list, prune"),
    "witness": ("witness.cli.witness:witness", "the supervisor: run, start, stop, status, patrol"),
}
# Commands that Gas Town has too. What of them is not ours (`gt witness attach`, `gt hooks sync`, `gt peek mayor/`) is
# handed over as well; beside them, what only we have.
SHARED: dict[str, frozenset[str]] = {
    "config": frozenset(["show", "explain", "schema"]),
    "doctor": frozenset(),
    "done": frozenset(),
    "hooks": frozenset(["uninstall", "plugin"]),
    "init": frozenset(),
    "molecule": frozenset(["lint", "vars"]),
    "nudge": frozenset(),
    "peek": frozenset(),
    "polecat": frozenset(["spawn", "reset"]),
    "stop": frozenset(),
    "witness": frozenset(["run", "patrol", "install"]),
    "worktree": frozenset(["prune"]),
}
