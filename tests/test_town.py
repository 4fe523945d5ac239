from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from witness.config.settings import load_settings
from witness.config.town import Town, derive_socket
from witness.errors import DeclarationError, NotFoundError, TownNotFoundError, UsageError

RIGS = {
    "gastown": {"beads": {"prefix": "gt"}},
    "beads": {"beads": {"prefix": "bd"}},
    "wide": {"beads": {"prefix": "gt-wide"}},
    "bare": {"git_url": "x"},
}


def _gastown(root: Path, rigs: Any = RIGS, *, at: str = "mayor/rigs.json") -> Path:
    (root / "mayor").mkdir(parents=True)
    (root / "mayor" / "town.json").write_text('{"type": "town", "version": 2, "name": "t"}')
    (root / at).write_text(rigs if isinstance(rigs, str) else json.dumps({"version": 1, "rigs": rigs}))
    return root


# -- finding -----------------------------------------------------------------------------------------------------------


def test_the_outermost_town_json_wins_over_nearer_ones(tmp_path: Path) -> None:
    outer = _gastown(tmp_path / "outer")
    inner = _gastown(outer / "rig")
    (inner / "deep" / "mayor").mkdir(parents=True)
    town = Town.find(inner / "deep" / "mayor", environ={})
    assert town.root == outer
    assert town.gastown
    assert town.why.startswith("mayor/town.json at or above ")


def test_a_town_json_beats_any_mayor_folder_however_far_out(tmp_path: Path) -> None:
    (tmp_path / "mayor").mkdir()
    root = _gastown(tmp_path / "town")
    assert Town.find(root, environ={}).root == root
    (root / "mayor" / "town.json").unlink()
    assert Town.find(root, environ={}).root == tmp_path, "of mayor folders the outermost wins"


def test_a_standalone_town_gives_way_to_a_gas_town(tmp_path: Path) -> None:
    standalone = Town.init(tmp_path / "a" / "b")
    assert Town.find(standalone.root, environ={}).root == standalone.root
    assert not standalone.gastown
    root = _gastown(tmp_path / "a")
    assert Town.find(standalone.root, environ={}).root == root


def test_the_environment_is_asked_last_and_only_for_towns(tmp_path: Path) -> None:
    one, two = _gastown(tmp_path / "one"), _gastown(tmp_path / "two")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert Town.find(elsewhere, environ={"GT_TOWN_ROOT": str(one), "GT_ROOT": str(two)}).root == one
    found = Town.find(elsewhere, environ={"GT_TOWN_ROOT": str(elsewhere), "GT_ROOT": str(two)})
    assert found.root == two
    assert "GT_ROOT" in found.why
    assert Town.find(one, environ={"GT_TOWN_ROOT": str(two)}).root == one
    with pytest.raises(TownNotFoundError, match="gt init"):
        Town.find(elsewhere, environ={})


def test_a_deleted_working_directory_leaves_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, gone = _gastown(tmp_path / "town"), tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert Town.find(environ={"GT_TOWN_ROOT": str(root)}).root == root


def test_links_are_not_resolved_on_the_way_up(tmp_path: Path) -> None:
    root = _gastown(tmp_path / "real")
    (tmp_path / "link").symlink_to(root)
    assert Town.find(tmp_path / "link", environ={}).root == tmp_path / "link"


# -- sockets -----------------------------------------------------------------------------------------------------------


def test_the_socket_of_a_path_that_does_not_exist() -> None:
    assert derive_socket(Path("/home/u/gt")) == "gt-56fe62"


def test_the_sockets_name_is_from_the_link_and_its_hash_from_the_real_path(tmp_path: Path) -> None:
    root = _gastown(tmp_path / "real")
    (tmp_path / "My Link!").symlink_to(root)
    real, link = derive_socket(root), derive_socket(tmp_path / "My Link!")
    assert real.startswith("real-")
    assert link == f"my-link-{real[-6:]}"
    assert derive_socket(Path("/nonexistent/ÄÖ")).startswith("default-")


def test_two_towns_of_one_name_have_two_sockets(tmp_path: Path) -> None:
    one, two = Town.at(_gastown(tmp_path / "a" / "gt")), Town.at(_gastown(tmp_path / "b" / "gt"))
    assert one.socket != two.socket
    assert one.session("gastown", "Toast") == two.session("gastown", "Toast")


@pytest.mark.parametrize(("given", "taken"), [("mine", "mine"), ("", ""), ("default", ""), ("auto", "")])
def test_gt_tmux_socket_and_nothing_of_tmux(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, taken: str
) -> None:
    town = Town.at(_gastown(tmp_path / "town"))
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/other,1,0")
    monkeypatch.setenv("GT_TMUX_SOCKET", given)
    assert town.socket == (taken or derive_socket(town.root))


# -- rigs and sessions -------------------------------------------------------------------------------------------------


def test_prefixes_are_taken_as_they_are_written(tmp_path: Path) -> None:
    town = Town.at(_gastown(tmp_path / "town", {"a": {"beads": {"prefix": "ap-"}}, "b": {"beads": None}, "c": 3}))
    assert town.session("a", "Toast") == "ap--Toast"
    assert town.rigs == ("a", "b", "c")
    assert town.session("b", "Toast") == "gt-Toast"


def test_rigs_json_at_the_root_is_the_fallback(tmp_path: Path) -> None:
    root = _gastown(tmp_path / "town", {"one": {"beads": {"prefix": "on"}}}, at="rigs.json")
    assert Town.at(root).prefixes == {"one": "on"}
    (root / "mayor" / "rigs.json").write_text('{"rigs": {}}')
    assert Town.at(root).prefixes == {}


@pytest.mark.parametrize("text", ["", "[]", '{"rigs": []}', "{", "nonsense", "\x00"])
def test_a_broken_rigs_json_is_named_or_holds_no_rigs(tmp_path: Path, text: str) -> None:
    root = _gastown(tmp_path / "town", text)
    try:
        assert Town.at(root).rigs == ()
    except DeclarationError as error:
        assert str(root / "mayor" / "rigs.json") in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        ("gt-Toast", ("gastown", "polecat", "Toast")),
        ("gt-wide-Toast", ("wide", "polecat", "Toast")),
        ("bd-a-b", ("beads", "polecat", "a-b")),
        ("gt-witness", ("gastown", "witness", "")),
        ("gt-refinery", ("gastown", "refinery", "")),
        ("gt-crew-max", ("gastown", "crew", "max")),
        ("hq-mayor", ("", "mayor", "mayor")),
        ("hq-dog-3", ("", "dog", "3")),
        ("gt-crew-", None),
        ("hq-nosuch", None),
        ("gthq-x", ("gthq", "polecat", "x")),
        ("gt-", None),
        ("dotfiles-main", None),
    ],
)
def test_sessions_are_read_by_the_longest_prefix(tmp_path: Path, session: str, expected: object) -> None:
    assert Town.at(_gastown(tmp_path / "town")).parse_session(session) == expected


@pytest.mark.parametrize("name", ["witness", "refinery", "crew-max"])
def test_a_polecat_cannot_take_the_session_of_another_agent(tmp_path: Path, name: str) -> None:
    town = Town.at(_gastown(tmp_path / "town"))
    with pytest.raises(UsageError, match="would share its session"):
        town.session("gastown", name)
    assert Town.init(tmp_path / "own").session("main", name)


def test_unknown_rigs_are_refused_where_rigs_are_declared(tmp_path: Path) -> None:
    town = Town.at(_gastown(tmp_path / "town"))
    assert town.check_rig("bare") == "bare"
    with pytest.raises(NotFoundError, match="this town has gastown, beads, wide, bare"):
        town.check_rig("nosuch")
    assert Town.init(tmp_path / "own").check_rig("any") == "any"


def test_the_rig_of_a_place(tmp_path: Path) -> None:
    town = Town.at(_gastown(tmp_path / "town"))
    assert town.rig_of(town.root / "beads" / "polecats" / "x") == "beads"
    assert town.rig_of(town.root) == "main"
    alone = Town.at(_gastown(tmp_path / "alone", {"one": {"beads": {"prefix": "on"}}}))
    assert alone.rig_of(tmp_path) == "one"


def test_the_rig_of_a_bead_by_routes_then_rigs(tmp_path: Path) -> None:
    town = Town.at(_gastown(tmp_path / "town", {**RIGS, "a": {"beads": {"prefix": "ap-"}}}))
    assert town.rig_of_bead("gt-12") == "gastown"
    assert town.rig_of_bead("gt-wide-12") == "wide"
    assert town.rig_of_bead("ap-1") == "a"
    assert town.rig_of_bead("docs/issue.md") == ""
    (town.root / ".beads").mkdir()
    routes = '{"prefix":"gt-","path":"moved/mayor/rig"}\nnonsense\n{"prefix":3}\n{"prefix":"hq-","path":"."}\n'
    (town.root / ".beads" / "routes.jsonl").write_text(routes)
    assert town.rig_of_bead("gt-12") == "moved"
    assert town.rig_of_bead("hq-1") == ""


def test_worktrees_of_both_layouts(tmp_path: Path) -> None:
    town = Town.at(_gastown(tmp_path / "town"))
    assert town.worktree("gastown", "Toast") is None
    old = town.root / "gastown" / "polecats" / "Toast"
    old.mkdir(parents=True)
    assert town.worktree("gastown", "Toast") is None
    (old / ".git").write_text("gitdir: elsewhere\n")
    assert town.worktree("gastown", "Toast") == old
    (old / "gastown").mkdir()
    assert town.worktree("gastown", "Toast") == old / "gastown"


def test_emergency_stops(tmp_path: Path) -> None:
    town = Town.at(_gastown(tmp_path / "town"))
    assert not town.stopped("beads")
    (town.root / "ESTOP.beads").touch()
    assert town.stopped("beads")
    assert not town.stopped("gastown")
    assert not town.stopped()
    (town.root / "ESTOP").touch()
    assert town.stopped("gastown")


# -- standalone towns --------------------------------------------------------------------------------------------------


def _standalone(root: Path, text: str) -> Town:
    root.mkdir()
    (root / "town.yaml").write_text(text)
    return Town.at(root)


def test_town_yaml_names_rigs_their_code_and_prefixes(tmp_path: Path) -> None:
    town = _standalone(tmp_path / "own", "name: own\nrigs:\n  api: {path: ../src/api, prefix: ap}\n  web:\n  main:\n")
    assert town.rigs == ("api", "web", "main")
    assert town.session("api", "Toast") == "ap-Toast"
    assert town.session("web", "Toast") == "web-Toast"
    assert town.session("main", "Toast") == "gt-Toast"
    assert town.workdir("api") == tmp_path / "src" / "api"
    assert town.workdir("web") is None
    assert town.rig_of(tmp_path / "src" / "api" / "deep") == "api"
    with pytest.raises(NotFoundError):
        town.check_rig("nosuch")


def test_a_rig_named_gt_does_not_share_the_sessions_of_main(tmp_path: Path) -> None:
    town = Town.init(tmp_path / "own")
    assert town.session("gt", "toast") != town.session("main", "toast")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rigs: [a]\n", "rigs: write it as"),
        ("rigs:\n  a: {color: red}\n", "town.yaml:2: rigs.a: unknown key 'color'"),
        ("rigs:\n  a: {path: 3}\n", "rigs.a: path must be a string"),
        ("rigs:\n  a.b:\n", "rigs.a.b: rig 'a.b' is not a usable name"),
        ("rigs:\n  a: 3\n", "rigs.a: write it as"),
        ("rigs:\n  a: {prefix: x}\n  b: {prefix: x}\n", "town.yaml:3: rigs.b: two rigs have the prefix 'x'"),
        ("rigs: {\n", "not YAML"),
        ("name: x\nrig: {a: }\n", "town.yaml:2: rig: unknown key; did you mean rigs?"),
        ("- a\n", "the file must hold a mapping"),
    ],
)
def test_a_wrong_town_yaml_names_its_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        _standalone(tmp_path / "own", text)
    assert words in str(caught.value)
    assert str(tmp_path / "own" / "town.yaml") in str(caught.value)


def test_init_leaves_an_existing_town_as_it_is(tmp_path: Path) -> None:
    root = _gastown(tmp_path / "town")
    before = sorted(os.walk(root))
    assert Town.init(root).gastown
    assert sorted(os.walk(root)) == before


# -- what a Gas Town has set -------------------------------------------------------------------------------------------


def test_operational_settings_are_read_and_bad_ones_are_the_default(tmp_path: Path) -> None:
    root = _gastown(tmp_path / "town")
    (root / "settings").mkdir()
    (root / "settings" / "config.json").write_text(
        json.dumps(
            {
                "operational": {
                    "witness": {"done_intent_stuck_timeout": "1m30s"},
                    "session": {"hung_session_threshold": "soon"},
                    "nudge": {"max_queue_depth": 7, "normal_ttl": "", "urgent_ttl": "-1h", "stale_claim_threshold": 5},
                    "daemon": {"polecat_self_terminate": True},
                    "polecat": "nonsense",
                }
            }
        )
    )
    knobs = Town.at(root).operational
    assert knobs.count("nudge", "max_queue_depth", 50) == 7
    assert knobs.seconds("nudge", "normal_ttl", 1800) == 1800
    assert knobs.seconds("nudge", "urgent_ttl", 7200) == 7200
    assert knobs.seconds("nudge", "stale_claim_threshold", 300) == 300
    assert knobs.seconds("polecat", "heartbeat_stale_threshold", 180) == 180
    assert knobs.flag("daemon", "polecat_self_terminate", False)
    settings = load_settings(root)
    assert settings.done_grace == 90
    assert settings.hung_after == 1800
    (root / "settings" / "witness.yaml").write_text("done_grace: 5s\n")
    assert load_settings(root).done_grace == 5


@pytest.mark.parametrize("text", ["", "[]", "{", '{"operational": 3}'])
def test_a_broken_settings_file_is_all_defaults(tmp_path: Path, text: str) -> None:
    root = _gastown(tmp_path / "town")
    (root / "settings").mkdir()
    (root / "settings" / "config.json").write_text(text)
    assert Town.at(root).operational.count("nudge", "max_queue_depth", 50) == 50


def test_a_patrol_finds_tmux_where_the_polecats_were_spawned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    town = Town.init(tmp_path / "town")
    monkeypatch.setenv("GT_TMUX_SOCKET", "mine")
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    town.remember_tmux()
    monkeypatch.delenv("GT_TMUX_SOCKET")
    monkeypatch.delenv("TMUX_TMPDIR")
    assert town.tmux_place == ("mine", str(tmp_path))
    town.remember_tmux()
    assert town.tmux_place == (derive_socket(town.root), "")


def test_a_setting_that_stands_twice_is_named(tmp_path: Path) -> None:
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "witness.yaml").write_text("stop_grace: 1s\n\nstop_grace: 2s\n")
    with pytest.raises(DeclarationError) as caught:
        load_settings(tmp_path)
    assert "witness.yaml:3: stop_grace: stands twice, first in line 1" in str(caught.value)


def test_the_runtime_is_closed_to_others_whatever_the_umask(tmp_path: Path) -> None:
    town = Town.init(tmp_path / "town")
    before = os.umask(0)
    try:
        town.make_runtime()
    finally:
        os.umask(before)
    assert [stat.S_IMODE(place.stat().st_mode) & 0o022 for place in (town.runtime.parent, town.runtime)] == [0, 0]


def test_the_socket_of_a_town_with_a_long_name_fits_the_kernel(tmp_path: Path) -> None:
    long, longer = tmp_path / ("long" * 40), tmp_path / ("long" * 41)
    assert len(f"/tmp/tmux-4294967295/{derive_socket(long)}") <= 107
    assert derive_socket(long) != derive_socket(longer)
    assert derive_socket(tmp_path / ("n" * 60)).startswith("n" * 60 + "-")
