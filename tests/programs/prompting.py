"""A program that draws Claude Code's prompt, takes what is typed, and writes down what it was given."""

import os
import tty

RULE = "\u2500" * 60
log = open(os.environ["PROMPT_LOG"], "a")


def draw(typed: str, foot: str = "  ? for shortcuts") -> None:
    shown = typed.replace("\r", "\r\n  ")
    os.write(1, f"\x1b[2J\x1b[H{RULE}\r\n\u276f {shown}\r\n{RULE}\r\n{foot}".encode())


tty.setraw(0)
os.write(1, b"\x1b[?2004h")
paste = False
typed = os.environ.get("PROMPT_TYPED", "")
draw(typed)
data = b""
while True:
    data += os.read(0, 4096)
    while data:
        if data.startswith(b"\x1b[200~"):
            paste, data = True, data[6:]
            print("paste", file=log, flush=True)
        elif data.startswith(b"\x1b[201~"):
            paste, data = False, data[6:]
        elif data.startswith(b"\x1b") and len(data) < 6:
            break
        elif data[:1] == b"\r" and not paste:
            print("took", repr(typed), file=log, flush=True)
            typed, data = "", data[1:]
        else:
            try:
                text = data.decode()
            except UnicodeDecodeError:
                break
            cut = text.find("\x1b") if "\x1b" in text else len(text)
            if not paste and "\r" in text[:cut]:
                cut = text.index("\r")
            typed, data = typed + text[:cut], text[cut:].encode()
    draw(typed)
