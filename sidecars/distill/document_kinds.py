"""What a file is by its first bytes: a document that has a reader, something that has none, or text."""

from __future__ import annotations

import re

# What begins like this is known, is no text, and no reader of ours is for it: what to do in its place.
_REFUSED: tuple[tuple[bytes, str], ...] = (
    (b"SQLite format 3\0", "an SQLite database: write what is needed out first (sqlite3 FILE .dump > FILE.sql)"),
    (b"PAR1", "a Parquet file: write it out as CSV or JSON lines first"),
    (b"ARROW1", "an Arrow file: write it out as CSV or JSON lines first"),
    (b"Obj\x01", "an Avro file: write it out as JSON lines first"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file: write what is needed out as CSV first"),
    (b"\xd0\xcf\x11\xe0", "an office file of the old kind: save it as docx or xlsx first"),
    (b"\x89PNG\r\n", "a picture: there is no text in it to be searched"),
    (b"\xff\xd8\xff", "a picture: there is no text in it to be searched"),
    (b"GIF8", "a picture: there is no text in it to be searched"),
    (b"\x7fELF", "a program: write its strings out first (strings FILE > FILE.txt)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it and declare the folder"),
    (b"Rar!\x1a\x07", "a RAR archive: unpack it and declare the folder"),
)
_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)


def kind_of(head: bytes) -> str:
    """The kind of document that an open file is: ``pdf``, ``html``, ``zip``; empty for what is read as it stands."""
    if head.startswith(b"%PDF-"):
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        return "zip"
    return "html" if _HTML.match(head.removeprefix(b"\xef\xbb\xbf")) else ""


def refusal(head: bytes) -> str:
    """Why a file that begins like this cannot be searched, with what to do about it; empty when it can."""
    for magic, why in _REFUSED:
        if head.startswith(magic):
            return f"is {why}"
    if head[257:262] == b"ustar":
        return "is a tar archive: unpack it and declare the folder"
    return ""
