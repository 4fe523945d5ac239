"""Makes ``docs/api.md`` from the docstrings of what is public; with ``--check`` it says whether the page is up to date.

The text is read, not imported, by griffe; griffe2md lays it out.
"""

from __future__ import annotations

import ast
import logging
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import griffe
from griffe2md import ConfigDict, default_config, prepare_context, prepare_env

if TYPE_CHECKING:
    from jinja2 import Environment

_CODE = re.compile(r"(?<!`)``(?!`)")
_TYPE = re.compile(r"<code>(.*?)</code>")
_LINK = re.compile(r"\[([^\[\]]*)\]\(#[^)]*\)")
HERE = Path(__file__).parent
PAGE = HERE / "api.md"
# The chapters of the page, and what stands in each; every public name stands in one of them.
CHAPTERS = {
    "Supervising": ["Town", "Witness", "AsyncWitness", "Molecule"],
    "Requests and results": [
        *["SpawnRequest", "SpawnPlan", "SpawnResult", "NudgeResult", "NukeResult", "PatrolReport", "ProcessInfo"],
        *["ProcessId"],
    ],
    "What a town knows": [
        *["Group", "GroupId", "GroupState", "Intent", "Member", "MemberKind", "MemberState", "Decision", "Usage"],
        *["WitnessEvent", "Snapshot", "TownEvent", "SidecarDecision"],
    ],
    "Judges": ["JudgeFunction", "Observation", "Ran", "JudgeContext", "Report"],
    "Clients": ["Client", "Channel"],
    "Errors": [
        *["WitnessError", "UsageError", "NotFoundError", "RunEndedError", "QueueFullError", "DeclarationError"],
        *["Problem", "SpawnError", "TownNotFoundError", "TownLockedError", "JournalError", "JournalCorruptError"],
        *["JournalMovedError", "TmuxError", "TmuxTimeoutError", "TmuxUnusableError"],
    ],
}
_CONFIG: ConfigDict = {
    **default_config,
    "docstring_section_style": "list",
    "heading_level": 3,
    "members_order": "source",
    "show_bases": True,
    "show_docstring_attributes": True,
    "show_object_full_path": False,
    "show_root_full_path": False,
    "show_signature_annotations": True,
    "signature_crossrefs": False,
    "summary": False,
}


def page() -> str:
    """The text of the page."""
    logging.getLogger("griffe").setLevel(logging.ERROR)
    loader = griffe.GriffeLoader(docstring_parser="google", search_paths=[str(HERE.parent)])
    witness = loader.load("witness")
    assert isinstance(witness, griffe.Module)  # noqa: S101
    testing = witness["testing"]
    public = {name for name in _all(witness) if name != "__version__"}
    named = [name for names in CHAPTERS.values() for name in names]
    if wrong := public.symmetric_difference(named) or {name for name in named if named.count(name) > 1}:
        raise SystemExit(f"docs/build_api.py: name once in CHAPTERS what is public: {', '.join(sorted(wrong))}")
    parts = [
        "# The library\n",
        "<!-- Made by `make docs` from the docstrings; change those. -->\n",
        *_docstring(witness),
    ]
    for title, names in CHAPTERS.items():
        parts += [f"## {title}\n", *(_object(witness, name) for name in names)]
    parts += ["## Testing\n", "All of it stands in `witness.testing`.\n", *_docstring(testing)]
    parts += [_object(testing, name) for name in _all(testing)]
    lines = "\n".join(parts).splitlines()
    kept = [line.rstrip() for at, line in enumerate(lines) if line.strip() or (at and lines[at - 1].strip())]
    return "\n".join(kept).rstrip() + "\n"


def _all(module: griffe.Module) -> list[str]:
    """The names of ``__all__``, in their order."""
    assert module.filepath  # noqa: S101
    tree = ast.parse(Path(str(module.filepath)).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    raise SystemExit(f"docs/build_api.py: {module.path} has no __all__")


@cache
def _environment() -> Environment:
    environment: Environment = prepare_env()
    return environment


def _object(module: griffe.Module, name: str) -> str:
    """One public name, without fields that its parameters tell of already, and without links that lead nowhere."""
    found = module[name]
    found = found.final_target if found.is_alias else found
    values = ""
    if found.is_class:
        bare = [each for each in found.members.values() if each.is_attribute and not each.docstring]
        if any("Enum" in str(base) for base in found.bases):
            values = "**Values:** " + ", ".join(f"`{each.name}`" for each in bare) + "\n"
        for each in bare:
            found.del_member(each.name)
    template = _environment().get_template(f"{found.kind.value}.md.jinja")
    text = template.render(**prepare_context(found, _CONFIG))
    text = _CODE.sub("`", text.replace(f"`{found.path}.", f"`{found.name}."))
    return _TYPE.sub(lambda it: f"`{_LINK.sub(lambda link: link[1], it[1])}`", text) + f"\n{values}"


def _docstring(module: griffe.Module) -> list[str]:
    """The text of a module, its examples as code."""
    parts = []
    for section in module.docstring.parsed if module.docstring else []:
        if section.kind is griffe.DocstringSectionKind.text:
            parts.append(_CODE.sub("`", section.value) + "\n")
        elif section.kind is griffe.DocstringSectionKind.examples:
            parts += [
                f"```python\n{text}\n```\n" if kind is not griffe.DocstringSectionKind.text else f"{text}\n"
                for kind, text in section.value
            ]
    return parts


def main() -> None:
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        raise SystemExit("docs/api.md is out of date: make docs")


if __name__ == "__main__":
    main()
