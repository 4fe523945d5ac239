"""What keeps the Witness of a town alive: a line for cron, a unit for systemd, a job for launchd.

Each names the town and the programs by their full paths and nothing of the caller's environment, since cron and the
services start with next to none; the town's socket follows from its root.
"""

from __future__ import annotations

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from witness.config.town import Town
from witness.errors import WitnessError

KINDS = ("cron", "systemd", "launchd")
# Where tmux and the agents' tools are found when PATH is not given.
# A turn takes milliseconds; a machine that swaps may need a thousand times that.
_WATCHDOG_SECONDS = 120
_CRON_LOG = 1 << 20
_USUAL = ("/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin")


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit.

    Args:
        kind: cron, systemd or launchd.
        text: what is to stand in the crontab or the file.
        path: the file it belongs into; None for the crontab.
        enable: the commands that make it count, for people.
    """

    kind: str
    text: str
    path: Path | None
    enable: str


def unit(town: Town, kind: str, home: Path | None = None) -> Unit:
    """The unit of a kind for a town.

    Args:
        town: the town.
        kind: one of ``KINDS``.
        home: the user's home; the present user's when None.
    """
    home = home or Path.home()
    return {"cron": _cron, "systemd": _systemd, "launchd": _launchd}[kind](town, home)


def _path() -> str:
    """The folders of the programs that we use, then the usual ones; what else is on the caller's PATH is left out."""
    found = [str(Path(place).parent) for name in ("tmux", "bd", "gt") if (place := shutil.which(name))]
    return os.pathsep.join(dict.fromkeys([*found, *_USUAL]))


def _environment(town: Town) -> dict[str, str]:
    given = {"PATH": _path(), "GT_TOWN_ROOT": str(town.root)}
    # A town on a socket of its own choice is on it for cron too.
    if socket := os.environ.get("GT_TMUX_SOCKET", ""):
        given["GT_TMUX_SOCKET"] = socket
    return given


def _command(*words: str) -> list[str]:
    # -P: a town may be a checkout that holds a witness/ or a re.py of its own, and cron starts there.
    return [sys.executable, "-P", "-m", "witness.cli", "witness", *words]


def _cron(town: Town, home: Path) -> Unit:
    settings = [f"{name}={value}" for name, value in _environment(town).items()]
    command = shlex.join(["cd", str(town.root)]) + " && " + shlex.join(["env", *settings, *_command("patrol")])
    # cron itself reads %: what follows the first would become standard input.
    command = command.replace("%", r"\%")
    log = shlex.quote(str(town.runtime / "cron.log")).replace("%", r"\%")
    # At boot the first minute is not waited for. The log is cut where it has grown: nobody rotates it.
    cut = f"[ $({{ wc -c <{log} || echo 0; }} 2>/dev/null) -lt {_CRON_LOG} ] || : >{log}"
    lines = [f"{when} {cut}; {command} >>{log} 2>&1 {_mark(town)}\n" for when in ("* * * * *", "@reboot")]
    return Unit("cron", "".join(lines), None, "crontab -e")


def _mark(town: Town) -> str:
    return f"# gt-witness {town.root}".replace("%", r"\%")


def _name(town: Town) -> str:
    return f"gt-witness-{town.socket}"


def _systemd(town: Town, home: Path) -> Unit:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$") + '"'

    def plain(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'

    lines = [
        "[Unit]",
        f"Description=Witness of the town {town.root}".replace("%", "%%"),
        # Whatever happens, it is started again: without it nobody supervises until the next login.
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        # It says when it takes requests, and at each turn that it lives.
        "Type=notify",
        "NotifyAccess=main",
        f"WatchdogSec={_WATCHDOG_SECONDS}",
        "ExecStart=" + " ".join(map(quoted, _command("run"))),
        f"WorkingDirectory={str(town.root).replace('%', '%%')}",
        *(f"Environment={plain(f'{name}={value}')}" for name, value in _environment(town).items()),
        # What a person wants it to have beside that; it need not be there.
        "EnvironmentFile=-%h/.config/gt-witness/environment",
        "Restart=always",
        "RestartSec=1",
        # Polecats, sidecars and the tmux server outlive a restart of the Witness.
        "KillMode=process",
        # Groups get cgroups of their own below it.
        "Delegate=yes",
        "",
        "[Install]",
        "WantedBy=default.target",
        "",
    ]
    path = home / ".config" / "systemd" / "user" / f"{_name(town)}.service"
    enable = f"systemctl --user daemon-reload && systemctl --user enable --now {_name(town)} && loginctl enable-linger"
    return Unit("systemd", "\n".join(lines), path, enable)


def _launchd(town: Town, home: Path) -> Unit:
    label = f"io.gt-witness.{town.socket}"
    text = plistlib.dumps(
        {
            "Label": label,
            "ProgramArguments": _command("run"),
            "WorkingDirectory": str(town.root),
            "EnvironmentVariables": _environment(town),
            "RunAtLoad": True,
            "KeepAlive": True,
            # launchd would end everything that the Witness has started along with it.
            "AbandonProcessGroup": True,
            "StandardErrorPath": str(town.runtime / "witness.log"),
        }
    ).decode()
    path = home / "Library" / "LaunchAgents" / f"{label}.plist"
    return Unit("launchd", text, path, f"launchctl bootstrap gui/$(id -u) {shlex.quote(str(path))}")


def write(town: Town, made: Unit) -> str:
    """Install a unit; the same one again changes nothing. Returns where it stands, for people.

    Raises:
        WitnessError: it cannot be written, or there is no crontab program.
    """
    town.make_runtime()
    if made.path is None:
        _write_crontab(town, made)
        return "your crontab"
    try:
        made.path.parent.mkdir(parents=True, exist_ok=True)
        made.path.write_text(made.text, encoding="utf-8")
    except OSError as error:
        raise WitnessError(f"cannot write {made.path}: {error.strerror}") from error
    return str(made.path)


def _write_crontab(town: Town, made: Unit) -> None:
    # Lines of others stay as they are and where they are.
    others = [line for line in _crontab() if not line.endswith(_mark(town))]
    _put_crontab([*others, *made.text.splitlines()])


def _crontab() -> list[str]:
    try:
        present = subprocess.run(["crontab", "-l"], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise WitnessError("there is no crontab program here: install cron, or use --systemd") from error
    if present.returncode != 0 and "no crontab" not in present.stderr:
        raise WitnessError(f"crontab -l: {present.stderr.strip() or present.returncode}")
    return present.stdout.splitlines()


def _put_crontab(lines: Iterable[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(["crontab", "-"], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WitnessError(f"crontab: {done.stderr.strip() or done.returncode}")


def remove(town: Town) -> list[str]:
    """Take away whatever units were written for a town; returns what there was, for people."""
    removed = []
    for kind in KINDS:
        path = unit(town, kind).path
        if path is not None and path.exists():
            if kind == "systemd" and shutil.which("systemctl"):
                disable = ["systemctl", "--user", "disable", "--now", path.name]
                subprocess.run(disable, capture_output=True, check=False, stdin=subprocess.DEVNULL)
            path.unlink()
            removed.append(str(path))
    lines = _crontab() if shutil.which("crontab") else []
    others = [line for line in lines if not line.endswith(_mark(town))]
    if others != lines:
        _put_crontab(others)
        removed.append("our lines of your crontab")
    return removed
