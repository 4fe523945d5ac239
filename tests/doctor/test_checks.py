from __future__ import annotations

import json
import os
import shlex
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.gas_town import make_gas_town
from witness.agents import hook_settings
from witness.api import Witness
from witness.clock import SystemClock
from witness.config.town import Town
from witness.doctor import Examination, Finding, Level, examine
from witness.doctor.checks import mend
from witness.journal import Decision, Group, GroupState, Journal, MemberKind, MemberState
from witness.launch import town_witness
from witness.names import GroupId
from witness.process.exits import wait_gone
from witness.process.table import is_alive


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town.init(tmp_path / "town")


def _look(town: Town | None, tmp_path: Path, **environ: str) -> list[Finding]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMUX_TMPDIR": str(tmp_path), **environ}
    return examine(Examination(town, tmp_path, environment))


def _of(findings: list[Finding], check: str) -> list[Finding]:
    return [finding for finding in findings if finding.check == check]


def _levels(findings: list[Finding], check: str) -> set[Level]:
    return {finding.level for finding in _of(findings, check)}


def _group(town: Town, state: GroupState, run: str = "r1") -> None:
    clock = SystemClock()
    town.make_runtime()
    with Journal(town.journal_path) as journal:
        journal.groups.add(Group(GroupId("main", "toast", run), "gt-toast", state, clock.boot, 0.0, 0.0, "/"))


def test_a_fresh_town_has_no_fault(town: Town, tmp_path: Path) -> None:
    findings = _look(town, tmp_path)
    assert not [finding for finding in findings if finding.level in (Level.FAULT, Level.WARNING)]
    assert any(str(town.root) in finding.message for finding in _of(findings, "town"))
    assert all(finding.fix for finding in findings if finding.level is Level.NOTE and finding.check == "key")


def test_without_a_town_it_says_where_it_looked(tmp_path: Path) -> None:
    (finding,) = _of(_look(None, tmp_path), "town")
    assert finding.level is Level.FAULT
    assert str(tmp_path) in finding.message
    assert finding.fix == "gt init"


def test_a_key_is_told_of_but_never_shown(town: Town, tmp_path: Path) -> None:
    findings = _look(town, tmp_path, GT_WITNESS_API_KEY="sk-secret", ANTHROPIC_BASE_URL="http://127.0.0.1:1")
    assert _levels(findings, "key") == {Level.OK, Level.NOTE}
    assert "sk-secret" not in json.dumps([finding.as_json() for finding in findings])


def test_files_that_others_may_read_are_closed(town: Town, tmp_path: Path) -> None:
    town.make_runtime()
    (town.runtime / "runs").mkdir()
    (town.runtime / "runs" / "log").touch()
    (town.runtime / "runs").chmod(0o755)
    (town.runtime / "runs" / "log").chmod(0o644)
    findings = _look(town, tmp_path)
    assert _levels(findings, "permissions") == {Level.WARNING}
    mend(findings)
    assert _levels(_look(town, tmp_path), "permissions") == {Level.OK}
    assert stat.S_IMODE((town.runtime / "runs" / "log").stat().st_mode) == 0o600
    assert stat.S_IMODE((town.runtime / "runs").stat().st_mode) == 0o700


def test_what_a_client_writes_into_a_closed_folder_is_not_open(town: Town, tmp_path: Path) -> None:
    inner = town.make_runtime() / "runs" / "r1" / "mod" / "types"
    inner.mkdir(parents=True)
    (inner / "index.d.ts").touch(0o644)
    for folder in (inner, inner.parent):
        folder.chmod(0o755)
    for folder in (town.runtime / "runs", town.runtime / "runs" / "r1"):
        folder.chmod(0o700)
    assert _levels(_look(town, tmp_path), "permissions") == {Level.OK}


def test_a_remedy_can_be_typed_where_a_folder_has_a_blank(tmp_path: Path) -> None:
    town = Town.init(tmp_path / "my town")
    (town.make_runtime() / "log").touch(0o644)
    (town.runtime / "log").chmod(0o644)
    (finding,) = _of(_look(town, tmp_path), "permissions")
    assert shlex.split(finding.fix) == ["chmod", "-R", "go=", str(town.runtime)]


def test_wrong_settings_and_molecules_are_named(town: Town, tmp_path: Path) -> None:
    (town.root / "settings").mkdir()
    (town.root / "settings" / "witness.yaml").write_text("sidecar: scope\n")
    formulas = town.root / ".beads" / "formulas"
    formulas.mkdir(parents=True)
    (formulas / "bad.formula.toml").write_text("[vars]\nsidecars = ['a']\n")
    (formulas / "good.formula.toml").write_text("[vars]\nsidecars = 'a'\n")
    findings = _look(town, tmp_path)
    assert "witness.yaml:1: sidecar: unknown key" in _of(findings, "settings")[0].message
    assert [finding.level for finding in _of(findings, "molecules")] == [Level.FAULT, Level.OK]


def test_outdated_hooks_are_installed_anew(town: Town, tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    hook_settings.install(path)
    assert _levels(_look(town, tmp_path), "hooks") == {Level.OK}
    settings = json.loads(path.read_text())
    del settings["hooks"]["Stop"]
    path.write_text(json.dumps(settings))
    findings = _look(town, tmp_path)
    assert _levels(findings, "hooks") == {Level.FAULT}
    mend(findings)
    assert hook_settings.status(path).complete
    path.write_text("{")
    assert Level.FAULT in _levels(_look(town, tmp_path), "hooks")


def test_sockets_of_dead_servers_are_removed_and_others_left(town: Town, tmp_path: Path) -> None:
    folder = tmp_path / f"tmux-{os.getuid()}"
    folder.mkdir()
    dead, twin, other = folder / town.socket, folder / "town-abcdef", folder / "unrelated-abcdef"
    for path in (dead, twin, other):
        with socket.socket(socket.AF_UNIX) as each:
            each.bind(str(path))
    with socket.socket(socket.AF_UNIX) as living:
        twin.unlink()
        living.bind(str(twin))
        living.listen()
        findings = _look(town, tmp_path)
        assert {finding.level for finding in _of(findings, "sockets")} == {Level.WARNING, Level.NOTE}
        mend(findings)
        assert not dead.exists()
        assert twin.exists()
        assert other.exists()


def test_a_group_without_a_witness_is_a_warning(town: Town, tmp_path: Path) -> None:
    _group(town, GroupState.RUNNING)
    (finding,) = _of(_look(town, tmp_path), "witness")
    assert finding.level is Level.WARNING
    assert "main/toast" in finding.message


def test_old_folders_of_ended_runs_are_deleted_and_strange_ones_told_of(town: Town, tmp_path: Path) -> None:
    _group(town, GroupState.NUKED)
    old, strange = town.run_dir("r1"), town.run_dir("r2")
    for folder in (old, strange):
        folder.mkdir(parents=True, mode=0o700)
    week_ago = time.time() - 8 * 86400
    os.utime(old, (week_ago, week_ago))
    findings = _look(town, tmp_path)
    assert {finding.level for finding in _of(findings, "runs")} == {Level.WARNING, Level.NOTE}
    mend(findings)
    assert not old.exists()
    assert strange.exists()


def test_an_emergency_stop_is_told_of(town: Town, tmp_path: Path) -> None:
    (town.root / "ESTOP").touch()
    assert _levels(_look(town, tmp_path), "stop") == {Level.NOTE}


def test_a_damaged_journal_is_set_aside_and_kept(town: Town, tmp_path: Path) -> None:
    town.make_runtime()
    town.journal_path.write_bytes(b"this is no database, " * 500)
    town.journal_path.chmod(0o600)
    findings = _look(town, tmp_path)
    assert _levels(findings, "database") == {Level.FAULT}
    mend(findings)
    assert _levels(_look(town, tmp_path), "database") == {Level.OK}
    (kept,) = town.runtime.glob("witness.db.damaged-*")
    assert kept.read_bytes().startswith(b"this is no database")


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Town]:
    """A town whose tmux server and Witness end with the test."""
    town = Town.init(tmp_path / "live")
    yield town
    with Witness(town, environ={}) as witness:
        witness.stop()  # with the fork server, which would wait a minute for somebody to need it
    subprocess.run(["tmux", "-L", town.socket, "kill-server"], capture_output=True, check=False)


def test_polecats_outlive_the_loss_of_the_journal(live: Town, tmp_path: Path) -> None:
    with Witness(live, environ={}) as witness:
        spawned = witness.spawn("toast", workdir=tmp_path, agent="sleep 600", sidecars="scope", task="hold on")
    town_witness.stop_witness(live)
    for name in ("witness.db", "witness.db-wal", "witness.db-shm"):
        (live.runtime / name).unlink(missing_ok=True)
    live.journal_path.write_bytes(b"nothing of use " * 1000)
    live.journal_path.chmod(0o600)
    done = mend([finding for finding in _look(live, tmp_path) if finding.check == "database"])
    assert "main/toast" in done[0][1]
    with Witness(live, environ={}) as witness:
        group = witness.find("toast")
        members = {member.name: member for member in witness.journal.members.of(group.id.run)}
        assert group.id == spawned.group
        assert group.session == spawned.session
        assert group.workdir == str(tmp_path)
        assert members["agent"].process == spawned.agent
        assert members["scope"].kind is MemberKind.SIDECAR
        assert members["scope"].state is MemberState.RUNNING
        assert members["scope"].process == spawned.sidecars[0].process
        witness.nuke(["toast"])
        wait_gone({spawned.agent}, 5.0)
        assert not is_alive(spawned.agent)
        judge = members["scope"].process
        assert judge
        assert not is_alive(judge)


def test_a_gas_towns_accounts_and_tracker_are_looked_at(tmp_path: Path) -> None:
    town = make_gas_town(tmp_path / "gt")
    account = tmp_path / "accounts" / "work"
    accounts = {"version": 1, "accounts": {"work": {"email": "x", "config_dir": str(account)}, "odd": 3}}
    (town.root / "mayor" / "accounts.json").write_text(json.dumps(accounts))
    hook_settings.install(account / "settings.json")
    findings = _look(town, tmp_path, PATH="/nonexistent")
    assert any("no bd on PATH" in finding.message for finding in _of(findings, "gt"))
    (finding,) = _of(findings, "hooks")
    assert str(account) in finding.message
    (town.root / "mayor" / "accounts.json").write_text("{")
    assert not any(str(account) in finding.message for finding in _look(town, tmp_path))


@pytest.mark.parametrize(("no", "yes", "named"), [(4, 1, True), (3, 2, False), (4, 0, False), (7, 3, True)])
def test_a_rule_that_nobody_heeds_is_named(town: Town, tmp_path: Path, no: int, yes: int, named: bool) -> None:
    _group(town, GroupState.NUKED)
    with Journal(town.journal_path) as journal:
        for number in range(no + yes):
            heeded = "no" if number < no else "yes"
            journal.decisions.add(
                Decision(f"d{number}", "r1", "scope", 0.0, 0.0, "injected", rule="edited-outside", heeded=heeded)
            )
        journal.decisions.add(Decision("u", "r1", "scope", 0.0, 0.0, "injected", rule="other", heeded="undecided"))
    found = _of(_look(town, tmp_path), "heeded")
    if not named:
        assert found == []
        return
    (finding,) = found
    assert finding.level is Level.WARNING
    assert f"edited-outside of sidecar scope: {no} of {no + yes} remarks were not heeded" in finding.message
