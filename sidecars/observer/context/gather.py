"""Gathering what a type's ``context`` names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from sidecars.observer.context import Context
from sidecars.observer.context.files import find, read_front_matter, read_text, title, within
from sidecars.observer.context.issue import add_issue
from sidecars.observer.context.mcp_listing import describe_servers
from sidecars.observer.context.project_names import offered
from sidecars.type_reader.sidecar_type import Rule, SidecarType
from witness.assignment import Assignment
from witness.prompts import TEXT, parse, present

_CODE = frozenset([".py", ".js", ".jsx", ".ts", ".tsx", ".go", ".rs", ".rb", ".java", ".kt", ".swift", ".php", ".sh"])
# Words by which specifications mark what must hold (RFC 2119 and its plain-language kin).
_NORMATIVE = re.compile(
    r"\b(MUST|SHALL|REQUIRED|must(?: not)?|shall(?: not)?|never|always|only|at most|at least|exactly)\b"
)
_SUMMARY_LINES = 80
# Where the polecat's prompt is, in the folder of its run.
PROMPT_FILE = "prompt.xml"
_LIBRARY = (".gt/blocks.xml", ".gt/blocks.md")


def gather(kind: SidecarType, assignment: Assignment) -> Context:
    """Gather a sidecar's context.

    Raises:
        DeclarationError: a file that the argument names is missing, or a document's front matter is wrong.
    """
    material = Context()
    workdir = Path(assignment.workdir)
    for source in kind.context:
        name, _, rest = source.partition(":")
        if name == "files":
            material = _add_documents(material, find([rest], workdir, wanted=False), workdir)
        elif name == "conventions":
            material = _add_conventions(material, assignment)
        elif name == "own":
            if rest in kind.files:
                material = replace(material, documents=(*material.documents, (rest, kind.files[rest])))
        else:
            material = _SOURCES[source](material, assignment)
    return material


def _add_argument(material: Context, assignment: Assignment) -> Context:
    patterns = [part.strip() for part in assignment.argument.split(",") if part.strip()]
    workdir = Path(assignment.workdir)
    return _add_documents(material, find(patterns, workdir, wanted=True), workdir)


def _add_documents(material: Context, paths: Iterable[Path], workdir: Path) -> Context:
    known = {name for name, _ in material.documents}
    for path in paths:
        name = title(path, workdir)
        if name in known:
            continue
        text = read_text(path)
        front = read_front_matter(text, str(path))
        documents = [(name, front.body.strip())]
        if path.suffix in _CODE:
            material = replace(material, names={**offered(name, front.body), **material.names})
        elif summary := summarise(front.body, 1 + text.count("\n") - front.body.count("\n")):
            documents.append((f"what must hold by {name}", summary))
        material = replace(
            material,
            documents=material.documents + tuple(documents),
            rules=material.rules + tuple(replace(rule, source=within(rule.source, workdir)) for rule in front.rules),
            sets={**front.sets, **material.sets},
        )
    return material


def summarise(text: str, first: int = 1) -> str:
    """The lines of a document that say what must hold, each with its number.

    Args:
        text: the document.
        first: the number of its first line.
    """
    lines = [
        f"{number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), first)
        if _NORMATIVE.search(line) and not line.startswith("#")
    ]
    return "\n".join(lines[:_SUMMARY_LINES])


def _add_conventions(material: Context, assignment: Assignment) -> Context:
    """The project's guides, the argument's documents among them, and its linters' configuration, as rules too."""
    from sidecars.observer.conventions.linters import CONFIGURATIONS, read_configuration
    from sidecars.observer.conventions.reader import GUIDES, distinct, read_guide

    workdir = Path(assignment.workdir)
    named = [part.strip() for part in assignment.argument.split(",") if part.strip()]
    rules: list[Rule] = []
    own = {title(path, workdir) for path in find(named, workdir, wanted=True)}
    guides = [*find(named, workdir, wanted=True), *find(GUIDES, workdir, wanted=False)]
    material = _add_documents(material, dict.fromkeys(guides), workdir)
    for path in dict.fromkeys(guides):
        name = title(path, workdir)
        if path.suffix.lower() in ("", ".md", ".mdc", ".txt", ".rst", ".adoc") or name in own:
            text = read_text(path)
            body = read_front_matter(text, str(path)).body
            rules += read_guide(body, name, 1 + text.count("\n") - body.count("\n"))
    for path in find(CONFIGURATIONS, workdir, wanted=False):
        rules += read_configuration(read_text(path), title(path, workdir))
    return replace(material, rules=(*material.rules, *distinct(rules)))


def _add_mcp(material: Context, assignment: Assignment) -> Context:
    listing = describe_servers(Path(assignment.workdir))
    return replace(material, documents=(*material.documents, ("MCP tools", listing))) if listing else material


def _add_prompt(material: Context, assignment: Assignment) -> Context:
    """The blocks that the prompt has, and a library of blocks to give: the argument's files, or the project's own."""
    prompt = Path(assignment.run_dir) / PROMPT_FILE
    if prompt.is_file():
        material = replace(material, blocks=present(read_text(prompt)))
    workdir = Path(assignment.workdir)
    patterns = [part.strip() for part in assignment.argument.split(",") if part.strip()]
    library: dict[str, str] = {}
    sources: dict[str, str] = {}
    for path in find(patterns, workdir, wanted=True) or find(_LIBRARY, workdir, wanted=False):
        text = read_text(path)
        for block in parse(text):
            if block.type != TEXT and block.content.strip() and block.type not in library:
                library[block.type] = " ".join(block.content.split())
                sources[block.type] = within(f"{path}:{_line_of(block.content, text)}", workdir)
    return replace(material, library=library, library_sources=sources)


def _line_of(content: str, text: str) -> int:
    """The line of a text at which a block's content begins; 1 where it is spelled otherwise there."""
    first = next(line.strip() for line in content.splitlines() if line.strip())
    return 1 + text.count("\n", 0, max(0, text.find(first)))


_SOURCES: Mapping[str, Callable[[Context, Assignment], Context]] = {
    "argument": _add_argument,
    "issue": add_issue,
    "mcp": _add_mcp,
    "prompt": _add_prompt,
}
