"""Gathering what a type's ``context`` names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from sidecars.observer.context import Context
from sidecars.observer.context.files import FrontMatter, find, read_front_matter, read_text, title, within
from sidecars.observer.context.issue import add_issue
from sidecars.observer.context.mcp_listing import describe_servers
from sidecars.observer.context.project_names import offered
from sidecars.syntax.languages import is_generated
from sidecars.type_reader.sidecar_type import Rule, SidecarType
from witness.assignment import Assignment
from witness.errors import DeclarationError
from witness.prompts import TEXT, parse, present

_CODE = frozenset([".py", ".js", ".jsx", ".ts", ".tsx", ".go", ".rs", ".rb", ".java", ".kt", ".swift", ".php", ".sh"])
# Words by which specifications mark what must hold (RFC 2119 and its plain-language kin).
_NORMATIVE = re.compile(
    r"\b(MUST|SHALL|REQUIRED|must(?: not)?|shall(?: not)?|never|always|only|at most|at least|exactly)\b"
)
_SUMMARY_LINES = 80
# Front matter, of whatever form.
_FOREIGN_HEAD = re.compile(r"\A\ufeff?---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
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
    patterns = _parts(assignment.argument)
    workdir = Path(assignment.workdir)
    return _add_documents(material, find(patterns, workdir, wanted=True), workdir)


def _parts(argument: str) -> list[str]:
    """The files or globs of an argument: between commas, with or without the backslash of a list of sidecars."""
    return [part.strip() for part in argument.replace("\\,", ",").split(",") if part.strip()]


def _add_documents(material: Context, paths: Iterable[Path], workdir: Path, *, lenient: bool = False) -> Context:
    known = {name for name, _ in material.documents}
    for path in paths:
        name = title(path, workdir)
        if name in known:
            continue
        text = read_text(path)
        try:
            front = read_front_matter(text, str(path))
        except DeclarationError:
            if not lenient:
                raise
            front = FrontMatter({}, (), _FOREIGN_HEAD.sub("", text))  # another program's, and not ours to complain of
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
    from sidecars.observer.conventions.reader import GUIDES, distinct, guide_body, read_guide, with_imported

    workdir = Path(assignment.workdir)
    own = find(_parts(assignment.argument), workdir, wanted=True)
    guides = dict.fromkeys([*own, *with_imported(find(GUIDES, workdir, wanted=False), workdir)])
    material = _add_documents(material, own, workdir)
    rules: list[Rule] = []
    for path in guides:
        name = title(path, workdir)
        if is_generated(name):
            continue
        if path not in own:
            material = _add_documents(material, [path], workdir, lenient=True)
        if path in own or path.suffix.lower() in ("", ".md", ".mdc", ".txt", ".rst", ".adoc"):
            text = read_text(path)
            body, only = guide_body(text)
            found = read_guide(body, name, 1 + text.count("\n") - body.count("\n"))
            rules += [replace(rule, within=rule.within or only) for rule in found]
    for path in find(CONFIGURATIONS, workdir, wanted=False):
        rules += read_configuration(read_text(path), title(path, workdir))
    return replace(material, rules=(*material.rules, *distinct(rules)))


def _add_mcp(material: Context, assignment: Assignment) -> Context:
    listing = describe_servers(Path(assignment.workdir))
    return replace(material, documents=(*material.documents, ("MCP tools", listing))) if listing else material


def _add_prompt(material: Context, assignment: Assignment) -> Context:
    """The blocks that the prompt has, and a library of blocks to give: the argument's files, or the project's own."""
    for prompt in find([PROMPT_FILE], Path(assignment.run_dir), wanted=False):
        material = replace(material, blocks=present(read_text(prompt)))
    workdir = Path(assignment.workdir)
    patterns = _parts(assignment.argument)
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
