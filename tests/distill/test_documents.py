"""Documents are read as what they are, with their pages and paragraphs; what cannot be read is refused by name."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from sidecars.distill import Answer, Exit, distill
from sidecars.distill.answer import Lines, lines_of
from sidecars.distill.errors import UnreadableError

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def write_pdf(path: Path, pages: list[list[str]]) -> Path:
    """A PDF with one font, written by hand."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        shown = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
        stream = f"BT /F1 11 Tf 50 780 Td {shown}ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {len(objects)} 0 R >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out, places = "%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{each}\nendobj\n"
    table = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n" + "".join(f"{at:010} 00000 n \n" for at in places)
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n"
    path.write_bytes(out.encode("latin-1"))
    return path


def write_docx(path: Path, body: str) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("[Content_Types].xml", "<Types/>")
        out.writestr("word/document.xml", f'<w:document xmlns:w="{_W}"><w:body>{body}</w:body></w:document>')
    return path


def paragraph(text: str) -> str:
    half = len(text) // 2  # as editors leave it: one sentence in several runs
    return f"<w:p><w:r><w:t>{text[:half]}</w:t></w:r><w:r><w:t>{text[half:]}</w:t></w:r></w:p>"


def found(answer: Answer, text: str) -> str:
    """The locator of the verified quote that holds a text."""
    places = [each.locator for each in answer.evidence if text in each.quote and each.verified]
    assert places, answer
    return places[0]


def test_a_pdf_is_quoted_with_its_page(tmp_path: Path) -> None:
    pages = [[f"Filler {page} line {line} about the weather" for line in range(30)] for page in range(5)]
    pages[3][7] = "The valve at pump 7 ruptured on 9 May"
    answer = distill([write_pdf(tmp_path / "a.pdf", pages)], "which valve ruptured?")
    assert found(answer, "pump 7 ruptured on 9 May") == "page 4"
    assert answer.outcome is Exit.ANSWERED


def test_a_docx_is_quoted_with_its_paragraph_and_its_tables_by_rows(tmp_path: Path) -> None:
    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("Payroll", "K. Lind", "2347"))
    body = "".join(paragraph(f"Filler number {n} on other things.") for n in range(40))
    body += paragraph("A week on call earns 420 euros.") + f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
    path = write_docx(tmp_path / "a.docx", body)
    assert found(distill([path], "what does a week on call earn?"), "earns 420 euros") == "paragraph 41"
    assert found(distill([path], "what is the extension of payroll?"), "Payroll | K. Lind | 2347")


def test_a_workbook_is_quoted_with_sheet_and_row(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Budget"
    for number in range(50):
        sheet.append([f"item {number}", number * 3])
    sheet.append(["gasket", 1999])
    book.save(tmp_path / "a.xlsx")
    assert found(distill([tmp_path / "a.xlsx"], "what does the gasket cost?"), "gasket | 1999").endswith("51")


def test_html_is_read_without_tags_and_scripts_and_located_by_its_lines(tmp_path: Path) -> None:
    filler = "\n".join(f"<p>Nothing of note on day {n}.</p>" for n in range(60))
    page = (
        f"<!DOCTYPE html><html><head><style>.gasket {{}}</style></head><body>\n{filler}\n"
        "<p>The <b>gasket</b> ruptured\nat dawn &amp; was replaced.</p><script>var gasket = 1</script></body></html>"
    )
    (tmp_path / "a.html").write_text(page)
    answer = distill([tmp_path / "a.html"], "when did the gasket rupture?")
    assert found(answer, "The gasket ruptured at dawn & was replaced.") == "L62"
    assert "var gasket" not in str(answer.evidence)


@pytest.mark.parametrize(
    ("name", "head", "way_out"),
    [
        ("a.db", b"SQLite format 3\0" + b"gasket" * 50, "sqlite3"),
        ("a.parquet", b"PAR1" + b"gasket" * 50, "CSV"),
        ("a.zip", b"PK\x03\x04" + b"gasket" * 50, "cannot be read"),
        ("a.pdf", b"%PDF-1.4\n" + b"gasket" * 50, "cannot be read"),
        ("a.png", b"\x89PNG\r\n\x1a\n" + b"gasket" * 50, "picture"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path, name: str, head: bytes, way_out: str) -> None:
    (tmp_path / name).write_bytes(head)
    with pytest.raises(UnreadableError, match=way_out) as raised:
        distill([tmp_path / name], "which gasket?")
    assert raised.value.exit_code == Exit.UNREADABLE
    assert name in str(raised.value)


def test_in_a_folder_it_is_a_gap_and_the_rest_is_searched(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"SQLite format 3\0" + b"gasket" * 50)
    (tmp_path / "b.log").write_text("the gasket ruptured\n")
    answer = distill([tmp_path], "which gasket ruptured?")
    assert found(answer, "the gasket ruptured") == "L1"
    assert any("a.db" in gap and "SQLite" in gap for gap in answer.gaps)


def test_a_pdf_of_pictures_and_an_archive_say_what_helps(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="OCR"):
        distill([write_pdf(tmp_path / "scan.pdf", [[], []])], "what?")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        out.writestr("gasket.txt", "gasket")
    with pytest.raises(UnreadableError, match="unpack it"):
        distill([tmp_path / "a.zip"], "which gasket?")


def test_locators_of_documents_are_read_back() -> None:
    places = ["page 1", "page 1", "page 2", "page 3", "L40", "L40"]
    assert lines_of("page 1", places) == Lines(1, 2)
    assert lines_of("page 2-3", places) == Lines(3, 4)
    assert lines_of("L40", places) == Lines(5, 6)
    assert lines_of("page 9", places) is None
