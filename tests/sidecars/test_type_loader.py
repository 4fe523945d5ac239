from __future__ import annotations

from pathlib import Path

import pytest

from sidecars.type_reader.sidecar_type import Confidence
from sidecars.type_reader.type_loader import load_type
from witness.errors import DeclarationError, NotFoundError
from witness.trust import type_names


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        suffix = "md" if name == "prompt" else "yaml"
        (folder / f"{name}.{suffix}").write_text(text)
    return folder


def test_what_is_shipped_is_right() -> None:
    for name in type_names():
        assert load_type(name).summary


def test_the_nearest_layer_wins_field_by_field(tmp_path: Path) -> None:
    town, work = tmp_path, tmp_path / "rig" / "work"
    write(town / ".gt" / "sidecars" / "scope", sidecar="poll: 7s\ncap: 3\n")
    write(town / "settings", witness="types: {scope: {cap: 4, threshold: high}}\n")
    write(town / "rig" / ".gt" / "sidecars" / "scope", sidecar="cap: 5\n")
    write(work / ".gt" / "sidecars" / "scope", snippets="opened-not: Ours.\n")
    kind = load_type("scope", town, "rig", work, {"holdout": 0.5})
    assert (kind.poll, kind.cap, kind.threshold, kind.holdout, kind.cooldown) == (7.0, 5, Confidence.HIGH, 0.5, 0.0)
    assert kind.snippets["opened-not"] == "Ours."
    assert "edited-not" in kind.snippets
    assert kind.origins["cap"] == f"{town}/rig/.gt/sidecars/scope/sidecar.yaml:1"
    assert kind.origins["threshold"] == f"{town}/settings/witness.yaml:1"
    assert kind.origins["snippets.opened-not"].endswith("snippets.yaml:1")


def test_a_type_of_ones_own(tmp_path: Path) -> None:
    write(
        tmp_path / ".gt" / "sidecars" / "naming",
        sidecar="judge: rules\nrules:\n  - {name: r, tools: Write, snippet: s}\n",
        snippets="s: PriorInjection.\n",
    )
    assert "naming" in type_names(tmp_path)
    assert load_type("naming", tmp_path).rules[0].tools == ("Write",)


def test_an_unknown_type_names_those_that_are_known() -> None:
    with pytest.raises(NotFoundError, match=r"no sidecar type named 'nope': .*known types: .*scope"):
        load_type("nope")


@pytest.mark.parametrize(
    ("sidecar", "fault"),
    [
        (
            "judge: oracle\n",
            "sidecar.yaml:1: judge: one of rules, model, command, python, rules+model, client, not 'oracle'",
        ),
        ("\npol: 5s\n", "sidecar.yaml:2: pol: unknown key"),
        ("poll: 0s\n", "sidecar.yaml:1: poll: must be from 0.05 s to 3600 s"),
        ("threshold: sure\n", "sidecar.yaml:1: threshold: one of low, medium, high, not 'sure'"),
        ("cap: many\n", "cap: must be a whole number"),
        ("holdout: 2\n", "holdout: must be a number from 0 to 1"),
        ("context: [wiki]\n", "context: 'wiki' is not a source"),
        ("poll: 1s\npoll: 2s\n", "sidecar.yaml:2: poll: stands twice, first in line 1"),
        ("- a\n", "sidecar.yaml:1: the file must hold a mapping"),
        ("a: [\n", "not YAML"),
        ("rules: 3\n", "rules: must be a list of rules"),
        ("rules:\n- x\n", "sidecar.yaml:2: rules.0: a rule is a mapping"),
        ("rules:\n- name: a\n  snippet: s\n  tool: Edit\n", "sidecar.yaml:4: rules.0.tool: unknown key of a rule"),
        ("rules:\n- name: a\n  tools: Edit\n", "sidecar.yaml:2: rules.0: give its words either by snippet or in say"),
        ("rules:\n- name: a\n  text: '('\n  snippet: s\n", "sidecar.yaml:3: rules.0.text: not a regular expression"),
        ("rules:\n- {name: a, snippet: s}\n", "rule 'a' has no condition and would fire at every action"),
        ("rules:\n- {name: a, tools: X, snippet: t}\n", "rule 'a' names no snippet of snippets.yaml (known: s)"),
        ("rules:\n- {name: a, tools: X, snippet: s}\n- {name: a, tools: X, snippet: s}\n", "two rules are named 'a'"),
        ("judge: rules\n", "judge 'rules' needs at least one rule"),
        ("judge: command\n", "judge 'command' needs the key command"),
        ("judge: model\nprompt: ' '\n", "judge 'model' needs prompt.md"),
    ],
)
def test_faults_name_file_line_and_key(tmp_path: Path, sidecar: str, fault: str) -> None:
    write(tmp_path / ".gt" / "sidecars" / "own", sidecar=sidecar, snippets="s: PriorInjection.\n", prompt="Look.\n")
    with pytest.raises(DeclarationError) as raised:
        load_type("own", tmp_path)
    assert fault in str(raised.value)


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    write(tmp_path / ".gt" / "sidecars" / "own", sidecar="cap: x\npoll: y\n", snippets="s: [1]\n")
    with pytest.raises(DeclarationError) as raised:
        load_type("own", tmp_path)
    assert len(raised.value.problems) == 3
