"""Polecats in folders whose names tmux, a shell or the kernel would read as something else."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.real.conftest import Place

pytestmark = pytest.mark.real

STRANGE = "w #S #(touch pwned) #[x] ##{pid} $HOME `id` 'a' \"b\" %H é ;"


def test_the_name_of_a_folder_is_no_format_of_tmux(make_place: Callable[..., Place]) -> None:
    place = make_place(f"{STRANGE}/{'deep' * 25}/{'deep' * 25}")
    place.spawn("toast", ["sleep", "70"], daemon=True, sidecars="tools")
    done = subprocess.run(
        ["tmux", "-u", "-L", place.town.socket, "list-sessions", "-F", "#{session_path}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == f"{place.work}\n"
    [nuked] = place.witness.nuke(["toast"])
    assert nuked.result
    assert nuked.result.survivors == ()
    assert not list(place.town.root.parents[1].rglob("pwned"))
