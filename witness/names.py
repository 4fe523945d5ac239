"""Names and addresses: what they may look like, and what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass

from witness.errors import NotFoundError, UsageError

# Gas Town's own rule for session names; a dot or a colon would be read by tmux as a window or pane.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

MARKER_VARIABLE = "GT_WITNESS_GROUP"
# Set in every helper of ours and in what sidecars start: with it, a marker did not come there by a stray export.
HELPER_VARIABLE = "GT_WITNESS_HELPER"


def check_name(what: str, name: str) -> str:
    """Return ``name`` when it can be a polecat, rig or sidecar name.

    Raises:
        UsageError: it has other characters than letters, digits, ``-`` and ``_``, begins with ``-``, or is too long.
    """
    if not _NAME.fullmatch(name) or name.startswith("-"):
        raise UsageError(
            f"{what} {name!r} is not a usable name: letters, digits, '-' and '_', at most 64, not beginning with '-'"
        )
    return name


def is_text(name: object) -> bool:
    """Whether a path or a text is UTF-8; the system allows any bytes in a name, journals and JSON do not."""
    try:
        str(name).encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class GroupId:
    """One life of one polecat.

    Args:
        rig: its rig.
        polecat: its name, which another life may have later.
        run: what no other life has.
    """

    rig: str
    polecat: str
    run: str

    @property
    def marker(self) -> str:
        """The value of ``GT_WITNESS_GROUP`` in every process of the group."""
        return f"{self.rig}/{self.polecat}/{self.run}"

    @property
    def address(self) -> str:
        """How people write it."""
        return f"{self.rig}/{self.polecat}"

    @classmethod
    def from_marker(cls, text: str) -> GroupId | None:
        """Read a marker back; None when it is not one.

        Args:
            text: the value of ``GT_WITNESS_GROUP``.
        """
        parts = text.split("/")
        if len(parts) != 3 or not all(_NAME.fullmatch(part) for part in parts):
            return None
        return cls(*parts)


def split_address(text: str) -> tuple[str, str]:
    """Split ``rig/name`` or ``rig/polecats/name`` or a bare name.

    Returns:
        (rig, name); the rig is empty for a bare name, which may also be a session.

    Raises:
        NotFoundError: it has another number of parts, or a part that cannot be a name, so no polecat has it.
    """
    parts = text.strip("/").split("/")
    if len(parts) == 3 and parts[1] == "polecats":
        parts = [parts[0], parts[2]]
    if len(parts) > 2 or not all(_NAME.fullmatch(part) for part in parts):
        raise NotFoundError("polecat", text, "a target is a name, rig/name, rig/polecats/name or a session")
    return (parts[0], parts[1]) if len(parts) == 2 else ("", parts[0])


def split_sidecar_address(text: str) -> tuple[str, str]:
    """Split ``TARGET/sidecar``.

    Returns:
        (target, sidecar name).

    Raises:
        UsageError: there is no ``/``.
    """
    target, slash, sidecar = text.rstrip("/").rpartition("/")
    if not slash:
        raise UsageError(f"{text!r} names no sidecar: write TARGET/SIDECAR, as in toast/specs")
    return target, sidecar
