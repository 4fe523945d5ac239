"""Files that somebody else can write too: opened without risk, read within bounds, replaced whole.

An agent has the rights of its user, so everything below a run's folder, the queues and the settings may at any moment
be a link, a FIFO, a device, a gigabyte of zeros or a folder. Such a file is read through here:

- No link is followed below the folder that the caller trusts (``below``), and no mount is entered; the path is walked
  by descriptors, so that nothing can be swapped between a check and the use.
- Only regular files are read, of ours or the system's, never waiting for a writer, never more than a limit.
- What a repository brings (``read_project``) may be a link within it, and none that leads out.
- A fault is an ``UnsafeFileError``: an ``OSError`` whose text is one line that names the file and what is wrong.

Writing goes to a new file beside the old one, which is then put into its place: a reader sees the old content or the
new one, and a link or a FIFO in that place is replaced, never written through.
"""

from witness.files.json_reading import parse_json, parse_toml, read_json, report_of, typed
from witness.files.opening import SMALL, UnsafeFileError, lines_of, open_regular, read_bytes, read_from, read_text
from witness.files.project import (
    check_within,
    files_below,
    files_matching,
    is_glob,
    open_project,
    project_top,
    read_project,
    repository_of,
)
from witness.files.writing import check_own_folder, clear_place, locked, make_folder, open_log, replace_file, write_all

__all__ = [
    "SMALL",
    "UnsafeFileError",
    "check_own_folder",
    "check_within",
    "clear_place",
    "files_below",
    "files_matching",
    "is_glob",
    "lines_of",
    "locked",
    "make_folder",
    "open_log",
    "open_project",
    "open_regular",
    "parse_json",
    "parse_toml",
    "project_top",
    "read_bytes",
    "read_from",
    "read_json",
    "read_project",
    "read_text",
    "replace_file",
    "report_of",
    "repository_of",
    "typed",
    "write_all",
]
