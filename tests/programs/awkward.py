"""Programs that are hard to stop, one a kind: ``python -S -I awkward.py KIND RECORD LIFE``.

Every process writes its identity, ``pid ticks``, as one line to the file RECORD. When the whole tree stands, the line
``stands`` follows, and a byte goes to the FIFO ``RECORD.stands`` if there is one. No process lives longer than LIFE
seconds: an alarm ends it, and nothing is forked after that instant, so a failed test leaves nothing for ever.

Standard library only, and no site packages: two hundred of these must start in a blink.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping

KIND, RECORD, LIFE = sys.argv[1], sys.argv[2], float(sys.argv[3])
# An absolute instant, handed on to programs that are started anew, so that no chain outlives it.
END = float(sys.argv[4]) if len(sys.argv) > 4 else time.monotonic() + LIFE
SLEEP = "/bin/sleep"
DEAF_TO = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

# Held open by every process that does not stand yet; whoever reads end-of-file knows that all of them do. Closed by
# exec as well, so a process that becomes another program is waited for too.
standing_r, standing_w = os.pipe()


def record() -> None:
    """Tell who this process is, and limit its life."""
    with open(f"/proc/{os.getpid()}/stat", "rb") as file:
        ticks = file.read().rpartition(b")")[2].split()[19].decode()
    write(f"{os.getpid()} {ticks}\n")
    left = END - time.monotonic()
    if left <= 0.01:
        os._exit(0)
    signal.setitimer(signal.ITIMER_REAL, left)


def write(line: str) -> None:
    fd = os.open(RECORD, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, line.encode())
    os.close(fd)


def fork(body: Callable[..., object], *arguments: object) -> int:
    """Run ``body`` in a recorded child; returns the child's pid."""
    pid = os.fork()
    if pid == 0:
        try:
            record()
            body(*arguments)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return pid


def stand() -> None:
    """This process has got where it wanted to be."""
    os.close(standing_w)


def tell() -> None:
    """Wait until all stand, then say so."""
    stand()
    os.read(standing_r, 1)
    write("stands\n")
    try:
        fd = os.open(RECORD + ".stands", os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return
    os.write(fd, b"\n")
    os.close(fd)


def rest() -> None:
    while True:
        signal.pause()


def sleeper() -> None:
    stand()
    rest()


def deaf(signals: tuple[signal.Signals, ...] = DEAF_TO) -> None:
    for number in signals:
        signal.signal(number, signal.SIG_IGN)


def daemonize(body: Callable[..., object], *arguments: object) -> None:
    """The classic double fork: a new session, and no parent of ours."""

    def middle() -> None:
        os.setsid()
        fork(body, *arguments)

    os.waitpid(fork(middle), 0)


def leader(*children: Callable[[], object]) -> None:
    """Start the children, tell when all stand, and stay."""
    for child in children:
        child()
    tell()
    rest()


# -- the kinds ------------------------------------------------------------------------------------------------------


def plain() -> None:
    """three children"""
    leader(*[lambda: fork(sleeper)] * 3)


def deep() -> None:
    """a chain of twenty generations, all alive"""

    def generation(left: int) -> None:
        if left:
            fork(generation, left - 1)
        sleeper()

    leader(lambda: fork(generation, 18))


def wide() -> None:
    """two hundred children"""
    leader(*[lambda: fork(sleeper)] * 200)


def stubborn() -> None:
    """every process ignores TERM, HUP and INT"""
    deaf()
    leader(lambda: fork(sleeper), lambda: fork(sleeper))


def stubborn_child() -> None:
    """the parent obeys, the children ignore TERM, HUP and INT"""

    def child() -> None:
        deaf()
        sleeper()

    leader(lambda: fork(child), lambda: fork(child))


def own_group() -> None:
    """children in a process group of their own"""

    def child() -> None:
        os.setpgid(0, 0)
        fork(sleeper)
        sleeper()

    leader(lambda: fork(child))


def own_session() -> None:
    """children in a session of their own"""

    def child() -> None:
        os.setsid()
        fork(sleeper)
        sleeper()

    leader(lambda: fork(child))


def daemon() -> None:
    """a daemon: forked twice, in a new session"""
    leader(lambda: daemonize(sleeper))


def become_sleep(name: str, environ: Mapping[str, str]) -> None:
    left = str(max(1, int(END - time.monotonic())))
    os.execve(SLEEP, [name, left], environ)


def daemon_bare() -> None:
    """a daemon that has cleared its environment"""
    leader(lambda: daemonize(become_sleep, "sleep", {}))


def daemon_renamed() -> None:
    """a daemon with a cleared environment and another name that ignores TERM, its parent long gone"""

    def child() -> None:
        deaf()
        become_sleep("[kworker/1:7-events]", {})

    leader(lambda: daemonize(child))


def keeper(apart: bool) -> None:
    # Half of a pair. The upper half waits for the lower one's death, the lower one for the end of a pipe that only
    # the upper one holds; whoever is left makes the pair whole again.
    told = False
    while time.monotonic() < END:
        lower_r, upper_w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(upper_w)
            if apart:
                os.setsid()
            record()
            if not told:
                stand()
            told = True
            os.read(lower_r, 1)
            os.close(lower_r)
            continue
        os.close(lower_r)
        if not told:
            stand()
        told = True
        os.waitpid(pid, 0)
        os.close(upper_w)


def twins() -> None:
    """two that restart each other, in one session"""
    leader(lambda: fork(keeper, False))


def twins_apart() -> None:
    """two that restart each other, each a daemon in a session of its own"""
    leader(lambda: daemonize(keeper, True))


def link(apart: bool) -> None:
    # Each link lives 50 ms and is followed by the next, for ever new pids without a living parent.
    first = True
    while True:
        if apart:
            os.setsid()
        record()
        if first:
            stand()
        first = False
        select.select([], [], [], 0.05)
        if os.fork():
            os._exit(0)


def chain() -> None:
    """a chain that forks itself anew every 50 ms and loses its parent each time"""
    leader(lambda: fork(link, False))


def chain_apart() -> None:
    """the same, every link in a session of its own"""
    leader(lambda: fork(link, True))


def stopped() -> None:
    """children that are stopped by SIGSTOP"""

    def child() -> None:
        kill_at_end()
        stand()
        os.kill(os.getpid(), signal.SIGSTOP)
        rest()

    pids = []
    leader(*[lambda: pids.append(fork(child))] * 2, lambda: [os.waitpid(pid, os.WUNTRACED) for pid in pids])


def kill_at_end() -> None:
    """An alarm does not reach a stopped process; a timer that sends KILL does."""
    import ctypes

    class Event(ctypes.Structure):
        _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int)]
        _fields_ += [("rest", ctypes.c_char * 48)]

    libc, timer = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
    event = Event(signal=signal.SIGKILL, notify=0)
    span = (ctypes.c_long * 4)(0, 0, max(1, int(END - time.monotonic())), 0)
    if libc.timer_create(1, ctypes.byref(event), ctypes.byref(timer)) or libc.timer_settime(timer, 0, span, None):
        os._exit(1)


def through_bash(script: str) -> None:
    def child() -> None:
        os.set_inheritable(standing_w, True)
        again = [sys.executable, "-S", "-I", __file__, "leaf", RECORD, str(LIFE), str(END), str(standing_w)]
        os.execvp("bash", ["bash", "-c", script, "bash", *again])

    leader(lambda: fork(child))


def leaf() -> None:
    """(used by the two that follow: one process that stands)"""
    record()
    os.close(int(sys.argv[5]))
    rest()


def nohup() -> None:
    """`nohup … &` from a bash without job control that has ended"""
    through_bash('nohup "$@" >/dev/null 2>&1 & disown -a')


def nohup_jobs() -> None:
    """`nohup … &` from a bash with job control that has ended"""
    through_bash('set -m; nohup "$@" >/dev/null 2>&1 & disown -a')


def exec_other() -> None:
    """a leader that becomes another program while its child lives"""

    def child() -> None:
        # The leader's end of the pipe is closed by its exec.
        tell()
        rest()

    fork(child)
    become_sleep("sleep", dict(os.environ))


def on_term(body: Callable[[], object]) -> None:
    """Answer the first TERM by starting something new."""

    def answer(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        body()

    signal.signal(signal.SIGTERM, answer)


def late_child(*, goes_on: Callable[[], object] = rest) -> None:
    # The pipe of those that stand was closed long ago.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    record()
    goes_on()


def late() -> None:
    """a leader that starts a child when TERM comes, after the nuke began"""

    def answer() -> None:
        if os.fork() == 0:
            os.setsid()
            late_child()

    on_term(answer)
    leader(lambda: fork(sleeper))


def late_daemon() -> None:
    """a leader that leaves a daemon with a cleared environment when TERM comes, and obeys"""

    def answer() -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                late_child(goes_on=lambda: become_sleep("sleep", {}))
            os._exit(0)
        os._exit(0)

    on_term(answer)
    leader(lambda: fork(sleeper))


def phoenix() -> None:
    """children that answer TERM by forking a copy of themselves, and then obey"""

    def child() -> None:
        def answer(*_: object) -> None:
            if os.fork() == 0:
                record()
                return
            os._exit(0)

        signal.signal(signal.SIGTERM, answer)
        sleeper()

    leader(lambda: fork(child), lambda: fork(child))


def headless() -> None:
    """a daemon whose first thread has ended: it looks defunct and is alive"""

    def child() -> None:
        import ctypes
        import threading

        def body() -> None:
            stand()
            threading.Event().wait(max(1.0, END - time.monotonic()))
            os._exit(0)

        threading.Thread(target=body).start()
        ctypes.CDLL(None).syscall({"aarch64": 93}.get(os.uname().machine, 60), 0)

    leader(lambda: daemonize(child))


def foster() -> None:
    """orphans that are adopted by a subreaper within the tree, which ends itself at the first signal"""

    def child() -> None:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        daemonize(sleeper)
        sleeper()

    leader(lambda: fork(child))


def negligent() -> None:
    """a parent that never asks for its children's end, so they stay defunct"""
    leader(lambda: fork(stand), lambda: fork(sleeper))


if __name__ == "__main__":
    if KIND != "leaf":
        record()
    globals()[KIND.replace("-", "_")]()
