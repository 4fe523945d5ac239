"""Answers the mod: what a command hook does at each event, done by one process that stays.

The mod (``mod/hooks/register.js``) is loaded into the client and starts this program as the client's child:
``python -S -I gt_mod.py``. Outside of a polecat, or below a client that is not the polecat's own, it ends at once and
the mod stays silent. It ends with the client.

Requests come over a Unix socket in the spool, each by the client's own process (the kernel says who connects):

=====================  =============================================================================================
``/ask/EVENT/SENT``    record the event, let the sidecars judge it, answer with what waits in the queue
``/note/EVENT``        record it and wake the sidecars; nobody waits for the answer (``/again/EVENT``: once more)
``/hello``             the answers that the mod has used so far
``/rest/CALL/SENT``    the answer to an ``ask`` that was not ready in time
``/untaken/CALL``      the client dropped the answer: what it held waits again
``/idle``              the turn is over and the agent sits at its prompt
``/usage``             tokens, quota and cost as the client measures them, kept in ``spool/usage.json``
``/completed/ID``      what the client's model answered to a sidecar's question
``/complete``          a sidecar's question to the client's model; any process of this user may put one
=====================  =============================================================================================

``SENT`` is the wall clock in milliseconds at which the mod began to wait. An answer is one JSON object: ``{}`` (nothing
to say), ``{"text", "call"}``, ``{"more": CALL}`` (the sidecars still judge: ask for the rest), or ``{"pass": true}``
(let the command hook do it). What the mod did not ask for goes to it over standard output, one JSON object a line:
``ready``, ``waiting`` (whether something waits), ``passes`` (tools that no sidecar looks at), ``submit``, ``complete``.

**One channel for each call.** A call is known by its mark (``tool_use_id``). The mod lets the command hook run only
when it has no answer, so a hook that runs for a call proves that the mod's answer to it, if there was one, was not
used. Recording and answering are each decided under a lock, and only while the mod still waits:

1. lock ``mod.lock``; append the record, unless the mod may have gone to the hook and that has recorded it; unlock.
2. lock the queue; is the mod still waiting? claim what is due; ledger ``offered`` with the mark; send; ledger
   ``drained``; finish the claims; unlock.

A hook that runs after the mod (``after_mod``) does not append what stands in the spool, and puts back what was offered
under its mark. When this process dies between offering and ``drained``, its successor is told by the mod which answers
it used: those are drained, the others wait again.
"""

import _signal
import _thread
import json
import os
import select
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gt_hook

sys.path[:0] = gt_hook.MODULES

import gt_calls  # noqa: E402
import gt_deliver  # noqa: E402
import gt_idle  # noqa: E402
import message_format  # noqa: E402
import offers  # noqa: E402
import queue_files  # noqa: E402
import spool_writer  # noqa: E402

SOCKET = "mod.sock"
# Written when this process answers: the first sign of life of the channel.
SIGN = "mod.json"
SERVING = "mod.serving"
USAGE = "usage.json"
# How long the mod waits for a first answer, and for the rest; ours must be out before that.
PATIENCE = 0.050
REST = 1.5
_ANSWER_WITHIN = 0.030
# Between two looks at what no event tells of.
TICK = 3.0
# A wall clock that was set back by more than this is not believed.
_CLOCK_STEP = 10.0
_BODY_LIMIT = 64 << 20
# Names of tools, as a sidecar writes them down.
_PASSES = 1 << 16
# A sidecar's own deadline is shorter.
_LONGEST_QUESTION = 60.0
# What the mod is to do, however alike.
_ACTS = ("submit", "complete")
# How many calls may wait for the mod to ask for the rest.
_KEPT = 64
# The client takes a socket's path of about a hundred bytes.
_PATH_LIMIT = 96
NOT_OURS = 3


class Server:
    """One run's server.

    Args:
        spool: the run's spool; it becomes the working directory.
        queue: its nudge queue.
        client: the client's process id.
        wait: seconds that sidecars may take to judge.
    """

    def __init__(self, spool, queue, client, wait):
        self.spool, self.queue, self.client, self.wait = spool, queue, client, wait
        self.rest = {}
        self.questions = {}
        self.said = {}
        self.number = 0
        # The session's id and transcript, for the ledger's word on what is submitted between two events.
        self.session = {}
        self.telling = _thread.allocate_lock()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    # -- start and end -------------------------------------------------------------------------------------------------

    def run(self):
        """Serve until the client is gone."""
        os.chdir(self.spool)
        serving = os.open(SERVING, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not held(serving, 1.0):
            return NOT_OURS
        if os.path.exists(SOCKET):
            os.unlink(SOCKET)
        self.listener.bind(SOCKET)
        self.listener.listen(64)
        os.makedirs(self.queue, mode=0o700, exist_ok=True)
        # Before any thread is there: they inherit its signal mask.
        wait = gt_idle.notifier(self.queue)
        write_whole(SIGN, {"pid": os.getpid(), "client": self.client, "since": time.time()})
        self.tell(ready=self.path(), passes=passes(), waiting=bool(queue_files.waiting(self.queue)))
        _thread.start_new_thread(self.accept, ())
        parent = select.poll()
        # The other end of our output is the client: its end is an error here, without a look at the clock.
        parent.register(1, select.POLLERR)
        while os.getppid() == self.client and os.path.exists(SIGN) and not parent.poll(0):
            self.look()
            wait(TICK)
        return 0

    def path(self):
        """The socket's path as the client can reach it, however deep the town is."""
        path = f"{self.spool}/{SOCKET}"
        if len(os.fsencode(path)) <= _PATH_LIMIT:
            return path
        if os.path.isdir("/proc/self/fd"):
            return f"/proc/{os.getpid()}/fd/{os.open(self.spool, os.O_RDONLY | os.O_DIRECTORY)}/{SOCKET}"
        import tempfile

        link = f"{tempfile.mkdtemp(prefix='gt-mod-', dir='/tmp')}/s"
        os.symlink(self.spool, link)
        return f"{link}/{SOCKET}"

    def tell(self, **facts):
        """Send what has changed to the mod."""
        with self.telling:
            news = {key: value for key, value in facts.items() if self.said.get(key) != value or key in _ACTS}
            if news:
                self.said.update(news)
                gt_deliver.print_whole(json.dumps(news), 1)

    # -- requests ------------------------------------------------------------------------------------------------------

    def accept(self):
        while True:
            peer, _ = self.listener.accept()
            pid, uid = peer_of(peer)
            if uid not in (os.geteuid(), None):
                peer.close()
                continue
            _thread.start_new_thread(self.serve, (peer, pid in (self.client, None)))

    def serve(self, peer, client):
        """Answer one connection's requests, one after the other."""
        with peer:
            if not client:
                peer.settimeout(1.0)  # a sidecar says its whole question at once
            buffer = b""
            while request := read_request(peer, buffer):
                path, body, buffer = request
                sent = Reply(peer)
                try:
                    words = path.strip("/").split("/")
                    if words[0] == "complete":
                        self.complete(json.loads(body), sent)
                    elif client:
                        self.answer(words, body, sent)
                    else:
                        break
                except BaseException as error:
                    gt_hook.note_fault(self.spool, "mod", error)
                    if not sent.done:
                        sent({"pass": True})
                if not sent.done:
                    sent({})

    def answer(self, words, body, reply):
        """Route one request; the reply may be sent within (before the ledger says so) or is ``{}``."""
        verb = words[0]
        if verb == "hello":
            self.settle_offers(json.loads(body).get("taken", []))
        elif verb == "ask":
            self.ask(words[1], body, Clock(words[2], PATIENCE), reply)
        elif verb in ("note", "again"):
            self.note(words[1], body, verb == "again")
        elif verb == "rest":
            self.hand_rest(words[1], words[2], reply)
        elif verb == "untaken":
            with queue_files.Locked(self.queue):
                offers.take_back(self.queue, "/".join(words[1:]), "the client dropped the answer")
        elif verb == "idle":
            self.rest_at_prompt()
        elif verb == "usage":
            write_whole(USAGE, {"time": time.time(), **json.loads(body)})
        elif verb == "completed" and (question := self.questions.pop(words[1], None)):
            question.append(json.loads(body))
            question[0].release()

    def note(self, event, body, again):
        """An event that nobody waits for; it comes again when its first receipt did not arrive."""
        with queue_files.Locked(".", name=gt_calls.LOCK):
            if not again or not gt_calls.is_recorded(".", gt_deliver.parsed(body)):
                spool_writer.record_event(".", body)
        if b'"agent_id"' not in body:
            spool_writer.begin_work(".")
        spool_writer.wake(".", 0)

    def ask(self, event, body, clock, reply):
        """Record, wake, wait, hand over; what takes longer than the mod waits at first goes on while it asks again."""
        call = Call(event, body, clock)
        if clock.over():
            reply({"pass": True})
            return
        if call.main and call.fields.get("transcript_path"):
            self.session = {key: call.fields.get(key) for key in ("session_id", "transcript_path")}
        if call.main and event not in gt_hook.RESTING:
            spool_writer.begin_work(".")
        _thread.start_new_thread(self.judge, (call,))
        if call.judged.acquire(timeout=max(0.0, _ANSWER_WITHIN - clock.age())):
            self.hand_over(call, reply)
            return
        self.number += 1
        self.rest[str(self.number)] = call
        for old in list(self.rest)[:-_KEPT]:
            self.rest.pop(old, None)
        call.clock = Clock(time.time() * 1000, REST)
        reply({"more": str(self.number)})

    def judge(self, call):
        """Record the event with what is seen of its effects, and wait for the sidecars."""
        try:
            now = time.time_ns()
            head = b"%d-%d 0" % (now, os.getpid())
            look = spool_writer.ask_looker(".", head, call.body, self.wait if call.event in gt_hook.COMPLETED else 0)
            with queue_files.Locked(".", name=gt_calls.LOCK):
                # Once the mod may have gone to the hook, the first to have the lock records.
                if call.age() < PATIENCE or not gt_calls.is_recorded(".", call.fields):
                    spool_writer.append_record(".", call.body, look=look, now=now)
            spool_writer.wake(".", self.wait if call.delivers else 0)
        except BaseException as error:
            call.failed = True
            gt_hook.note_fault(self.spool, "mod", error)
        finally:
            call.judged.release()

    def hand_rest(self, number, sent, reply):
        """The second half of an ask; its clock began when the mod asked for it."""
        call = self.rest.pop(number, None)
        if call is None:
            reply({"pass": True})
            return
        call.clock = Clock(sent, REST)
        call.judged.acquire(timeout=spool_writer.WORK_LIMIT + self.wait)
        self.hand_over(call, reply)

    def hand_over(self, call, reply):
        if call.failed or call.clock.over():
            reply({"pass": True})
        if reply.done or not call.delivers or not spool_writer.has_messages(self.queue):
            return
        mark = gt_calls.mark(call.fields)

        def send(_event, text):
            if not reply({"text": text, "call": mark}):
                raise OSError(f"the client hung up before it was told of {mark}")

        gt_deliver.deliver(
            call.event, call.body, self.queue, self.spool, send, mark, still=lambda: not call.clock.over()
        )

    def complete(self, asked, reply):
        """Have the client's model answer a sidecar."""
        self.number += 1
        number, answered = f"q{self.number}", _thread.allocate_lock()
        answered.acquire()
        question = self.questions[number] = [answered]
        self.tell(complete={"id": number, **{key: asked[key] for key in ("model", "prompt", "maxTokens")}})
        answered.acquire(timeout=min(float(asked["seconds"]), _LONGEST_QUESTION))
        self.questions.pop(number, None)
        reply(question[1] if len(question) > 1 else {"fault": "no answer in time"})

    # -- idle ----------------------------------------------------------------------------------------------------------

    def rest_at_prompt(self):
        """The agent sits at its prompt: from now on what comes is submitted as a prompt."""
        if os.environ.get("CLAUDE_CODE_ENTRYPOINT") != "cli":
            return  # without a prompt to sit at there is a last turn
        write_own("idle")
        self.look()

    def look(self):
        """Tell the mod what has changed, and wake an idle agent."""
        waiting = bool(queue_files.waiting(self.queue))
        self.tell(waiting=waiting, passes=passes(), band=prompt_line())
        if waiting and gt_idle.is_mine("idle"):
            self.submit()

    def submit(self):
        call = f"submit:{time.time_ns()}"

        def send(_event, text):
            self.tell(submit={"call": call, "text": text, "asUser": self.personal is not None})

        self.personal = None
        if gt_deliver.take(self.queue, self.session, "Submit", send, call, words=self.words):
            spool_writer.begin_work(".")

    def words(self, nudges, dropped):
        """A person's own single nudge is submitted bare, as if typed; all else under its senders' names."""
        text = message_format.clean(str(nudges[0]["message"]))
        if len(nudges) == 1 and not dropped and nudges[0].get("sender") == "human" and not text.startswith("/"):
            self.personal = text
            return text
        return message_format.compose(nudges, dropped)

    # -- after a crash -------------------------------------------------------------------------------------------------

    def settle_offers(self, taken):
        """What a dead predecessor had offered: used according to the mod or the transcript, or it waits again."""
        with queue_files.Locked(self.queue, 1.0) as lock:
            if lock.held:
                offers.settle_offers(self.queue, taken, message_format.in_transcript)


class Call:
    """One event that the mod waits for.

    Args:
        event: its name.
        body: the client's JSON.
        clock: how long the mod waits for the answer that is due now.
    """

    def __init__(self, event, body, clock):
        self.event, self.body, self.clock = event, body, clock
        self.fields = gt_deliver.parsed(body)
        self.main = not self.fields.get("agent_id")
        self.delivers = self.main and event in gt_hook.DELIVERING
        self.age = clock.age
        self.failed = False
        self.judged = _thread.allocate_lock()
        self.judged.acquire()


class Reply:
    """The one answer to a request."""

    def __init__(self, peer):
        self.peer, self.done = peer, False

    def __call__(self, value):
        """Send it; False when the peer is gone."""
        self.done = True
        body = json.dumps(value).encode()
        try:
            self.peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        except OSError:
            return False
        return True


class Clock:
    """How long the mod has waited.

    Args:
        sent: wall clock in milliseconds at which it began, as text.
        patience: seconds after which it gives up.
    """

    def __init__(self, sent, patience):
        self.sent, self.patience = int(sent) / 1000, patience

    def age(self):
        return time.time() - self.sent

    def over(self):
        return not -_CLOCK_STEP < self.age() < self.patience


def held(file, patience):
    """Whether the lock on an open file could be had in time."""
    import fcntl

    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.002)


def passes():
    """Tools that no sidecar looks at which is waited for; none before any sidecar has said so."""
    names = set(os.listdir("."))
    if any(name.endswith(".ask") and f"{name[:-4]}.passes" not in names for name in names):
        return []
    found = None
    for name in names:
        if name.endswith(".passes"):
            try:
                with open(name, encoding="utf-8", opener=gt_deliver.private) as file:
                    names_of_tools = json.loads(file.read(_PASSES))
                tools = set(names_of_tools) if isinstance(names_of_tools, list) else set()
            except (OSError, ValueError, TypeError, RecursionError):
                return []
            found = tools if found is None else found & tools
    return sorted(found or ())


def prompt_line():
    """What the Witness has to say above the prompt: one line of printable text, empty when it says nothing."""
    if os.environ.get("GT_WITNESS_BAND") == "0":
        return ""
    try:
        file = os.open("../prompt-line", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        line = os.read(file, 1000).decode("utf-8", "replace").partition("\n")[0]
    except OSError:
        return ""
    finally:
        os.close(file)
    return "".join(mark for mark in line if mark.isprintable())[:200]


def read_request(peer, buffer):
    """One request: its path, its body and what follows; None when the peer hangs up or talks nonsense."""
    while b"\r\n\r\n" not in buffer:
        if len(buffer) > 65536 or not (data := received(peer)):
            return None
        buffer += data
    head, _, body = buffer.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    length = 0
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            length = int(value)
    if not 0 <= length <= _BODY_LIMIT:
        return None
    parts, size = [body], len(body)
    while size < length:
        if not (data := received(peer)):
            return None
        parts.append(data)
        size += len(data)
    body = b"".join(parts)
    words = lines[0].split(b" ")
    return (words[1] if len(words) > 1 else b"").decode("utf-8", "replace"), body[:length], body[length:]


def received(peer):
    try:
        return peer.recv(1 << 20)
    except OSError:
        return b""


def peer_of(peer):
    """(process, user) of who has connected; None for each where the kernel does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None, None
    raw = peer.getsockopt(socket.SOL_SOCKET, option, 12)
    return int.from_bytes(raw[:4], sys.byteorder), int.from_bytes(raw[4:8], sys.byteorder)


def write_own(path):
    with open(path, "w", encoding="ascii", opener=gt_deliver.private) as file:
        file.write(str(os.getpid()))


def write_whole(path, value):
    temporary = f"{path}.{os.getpid()}.{time.monotonic_ns()}"
    with open(temporary, "w", encoding="utf-8", opener=gt_deliver.private) as file:
        json.dump(value, file)
    os.replace(temporary, path)


def main():
    spool = os.environ.get("GT_WITNESS_SPOOL") or gt_hook.followed_spool()
    queue = os.environ.get("GT_WITNESS_QUEUE", "")
    client = os.getppid()
    if not spool or not queue or not spool_writer.is_own_client(spool, client):
        return NOT_OURS
    os.umask(0o077)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    try:
        return Server(spool, queue, client, gt_hook.wait_seconds()).run()
    except BaseException as error:
        if os.path.isdir(spool):
            gt_hook.note_fault(spool, "mod", error)
        return 1


if __name__ == "__main__":
    os._exit(main())
