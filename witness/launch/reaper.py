"""The pane's first process: starts the agent, keeps its orphans, passes signals on, ends with the agent's code.

It runs as a script under ``python -S -I`` and imports nothing of ours, because one stays in memory for each agent.

    reaper.py RUN_DIR

``RUN_DIR/launch.json`` holds ``{"argv", "cwd", "environment", "grace", "cgroup", "limits"}``; it is read and removed
at once, since the environment may hold the agent's own keys. Into the cgroup go the reapers with all below them; into
those that bound it, ``limits``, the agent alone with what it starts. What happens is told in two files, written whole:
``started.json`` (``{"reaper", "keeper", "agent"}`` as [pid, start ticks], or ``{"error"}``) and ``exit.json``
(``{"code", "signal", "hangup"}``), and by one line in the FIFO ``started.fifo`` where somebody reads it. What the
agent's screen showed last stays in ``screen.txt``.

As a subreaper (Linux) it becomes the parent of whatever the agent's processes leave behind, double-forked daemons
included, so that the Witness finds them as its descendants. When the agent has ended it ends those too.

There are two of it, one below the other: the keeper is a fork of the reaper and holds the agent. Whichever of them is
killed, the other still holds every orphan, so no single SIGKILL lets a daemon slip away.
"""

import json
import os
import select
import signal
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_WATCHED = (signal.SIGCHLD, *_PASSED_ON)
_IGNORED = (signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP)
_OF_THE_PANE = ("TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE")
# After KILL the kernel needs moments; more rounds than this mean that something outruns us, and the Witness takes over.
_KILL_ROUNDS = 50
# What stays of the screen, and how long tmux may take for it.
_SCREEN_LINES, _SCREEN_SECONDS, _SCREEN_LIMIT = 200, 2.0, 1 << 20


def become_subreaper() -> None:
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def join_cgroup(folder: str) -> None:
    with open(f"{folder}/cgroup.procs", "w") as file:
        file.write("0")


def write_whole(path: str, value: object) -> None:
    write_bytes(path, json.dumps(value).encode())


def write_bytes(path: str, data: bytes) -> None:
    temporary = f"{path}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    handle = os.open(temporary, flags, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def start_ticks(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def children() -> list[int]:
    """Our children, orphans that came to us included; defunct ones too."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except (OSError, ValueError):
        return []


def start(argv: list[str], cwd: str, environment: dict[str, str], limits: list[str]) -> tuple[int, str]:
    """Start the agent within its limits; returns (pid, "") or (0, reason)."""
    read_end, write_end = os.pipe()  # closed by exec, or carries the reason why there was none
    pid = os.fork()
    if pid == 0:
        doing = "its limits cannot hold"
        try:
            for folder in limits:
                join_cgroup(folder)
            doing = argv[0]
            os.close(read_end)
            for number in (*_WATCHED, *_IGNORED, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.chdir(cwd)
            os.execvpe(argv[0], argv, environment)
        except BaseException as error:
            reason = getattr(error, "strerror", None) or str(error)
            os.write(write_end, f"{doing}: {reason}".encode()[:500])
        os._exit(127)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        reason = pipe.read().decode(errors="replace")
    if reason:
        os.waitpid(pid, 0)
        return 0, reason
    return pid, ""


def tell(run_dir: str, fact: object) -> None:
    write_whole(f"{run_dir}/started.json", fact)
    try:
        handle = os.open(f"{run_dir}/started.fifo", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # nobody waits any more; the file tells
        return
    try:
        os.write(handle, json.dumps(fact).encode() + b"\n")
    except OSError:
        pass
    finally:
        os.close(handle)


def collect(ended: dict[int, int]) -> None:
    """Reap every child that has ended; adds their wait statuses by pid."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        ended[pid] = status


def live(child: int, ended: dict[int, int]) -> bool:
    """Pass signals on until the child is among those that ended; returns whether the terminal was taken away."""
    hangup = False
    collect(ended)
    while child not in ended:
        came = signal.sigwaitinfo(_WATCHED)
        if came.si_signo == signal.SIGCHLD:
            collect(ended)
            continue
        hangup = hangup or came.si_signo == signal.SIGHUP
        # What the terminal sends (si_code > 0: the kernel) goes to the whole foreground group, the agent included;
        # only a hang-up reaches the session's leader alone.
        if came.si_code <= 0 or came.si_signo == signal.SIGHUP:
            try:
                os.kill(child, came.si_signo)
            except ProcessLookupError:
                pass
    return hangup or signal.SIGHUP in signal.sigpending()


def end_the_rest(grace: float) -> None:
    """End what the agent left: TERM, wait for facts until grace, then KILL in rounds."""
    for pid in children():
        try:
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
        except OSError:
            pass
    deadline = time.monotonic() + grace
    while children():
        remaining = deadline - time.monotonic()
        if remaining <= 0 or signal.sigtimedwait((signal.SIGCHLD,), min(remaining, 0.2)) is None:
            if remaining <= 0:
                break
        collect({})
    for _ in range(_KILL_ROUNDS):
        remaining_children = children()
        if not remaining_children:
            return
        for pid in remaining_children:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        signal.sigtimedwait((signal.SIGCHLD,), 0.05)
        collect({})


def keep(
    run_dir: str, agent_start: tuple[list[str], str, dict[str, str], list[str]], grace: float, reaper: list[int]
) -> int:
    """The keeper's life: start the agent, see it through, end what it leaves. Returns the exit code."""
    become_subreaper()
    me = [os.getpid(), start_ticks(os.getpid())]
    agent, reason = start(*agent_start)
    if reason:
        tell(run_dir, {"error": reason})
        sys.stderr.write(f"gt-witness: {reason}\n")
        return 127
    tell(run_dir, {"reaper": reaper, "keeper": me, "agent": [agent, start_ticks(agent)]})
    return see_through(run_dir, agent, grace, {})


def see_through(run_dir: str, agent: int, grace: float, ended: dict[int, int]) -> int:
    hangup = live(agent, ended)
    code = os.waitstatus_to_exitcode(ended[agent])
    signalled = -code if code < 0 else 0
    code = 128 + signalled if signalled else code
    write_whole(f"{run_dir}/exit.json", {"code": code, "signal": signalled, "hangup": hangup})
    if not hangup:
        keep_screen(run_dir)
    end_the_rest(grace)
    return code


def keep_screen(run_dir: str) -> None:
    """Leave the last lines of our pane in a file: it closes together with us, and they are why the agent ended."""
    pane, server = os.environ.get("TMUX_PANE", ""), os.environ.get("TMUX", "").split(",")[0]
    if not pane or not server:
        return
    read_end, write_end = os.pipe()
    try:
        pid = os.fork()
    except OSError:  # no more processes are to be had; the end goes on without a screen
        os.close(read_end)
        os.close(write_end)
        return
    if pid == 0:
        # TERM and HUP stay blocked in it: an end of the group now asks every process in it to go.
        try:
            os.dup2(write_end, 1)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 2)
            argv = ["tmux", "-u", "-S", server, "capture-pane", "-p", "-t", pane, "-S", f"-{_SCREEN_LINES}"]
            os.execvp(argv[0], argv)
        except BaseException:
            pass
        os._exit(127)
    os.close(write_end)
    data, deadline = b"", time.monotonic() + _SCREEN_SECONDS
    while (left := deadline - time.monotonic()) > 0 and len(data) < _SCREEN_LIMIT:
        if not select.select([read_end], [], [], left)[0]:
            break
        chunk = os.read(read_end, 65536)
        if not chunk:
            break
        data += chunk
    os.close(read_end)
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
    os.waitpid(pid, 0)
    lines = data.rstrip().split(b"\n")[-_SCREEN_LINES:]
    if lines != [b""]:
        try:
            write_bytes(f"{run_dir}/screen.txt", b"\n".join(lines) + b"\n")
        except OSError:
            pass  # a full disk; the end itself is told


def take_over(run_dir: str, grace: float, ended: dict[int, int]) -> int:
    """The keeper was killed: its children are ours now, the agent too, whether it lives or has ended meanwhile."""
    try:
        handle = os.open(f"{run_dir}/started.json", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle) as file:
            agent = int(json.loads(file.read(4096))["agent"][0])
    except Exception:  # the agent could write it too
        agent = 0
    if agent in ended or agent in children():
        return see_through(run_dir, agent, grace, ended)
    end_the_rest(grace)
    return 128 + signal.SIGKILL


def main() -> int:
    run_dir = sys.argv[1]
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    become_subreaper()
    with open(f"{run_dir}/launch.json") as file:
        launch = json.load(file)
    os.unlink(f"{run_dir}/launch.json")
    # What tmux says of the pane is true only here.
    launch["environment"].update({name: os.environ[name] for name in _OF_THE_PANE if name in os.environ})
    if launch.get("cgroup"):
        try:
            join_cgroup(launch["cgroup"])
        except OSError:
            pass  # the other nets must do
    grace = float(launch["grace"])
    reaper = [os.getpid(), start_ticks(os.getpid())]
    keeper = os.fork()
    if keeper == 0:
        agent_start = (launch["argv"], launch["cwd"], launch["environment"], launch.get("limits", []))
        os._exit(keep(run_dir, agent_start, grace, reaper))
    ended: dict[int, int] = {}
    live(keeper, ended)
    code = os.waitstatus_to_exitcode(ended[keeper])
    if code < 0:
        return take_over(run_dir, grace, ended)
    end_the_rest(grace)
    return code


if __name__ == "__main__":
    sys.exit(main())
