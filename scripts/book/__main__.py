"""Builds the book from docs/ with mdBook: python3 scripts/book [--brimful PROGRAM] [--out DIRECTORY]

The chapters are those of docs/SUMMARY.md. They are copied into a staging directory, in which the chapters that do not
exist in the repository are generated: the commands and flags from the program's man pages, the documents from their
JSON Schemas. Links to other files of the repository are made to point into the book. The built book loads nothing from
elsewhere, and is searchable. Beside each page is its Markdown, and `llms.txt` lists the pages for programs.

Exit codes: 0 built; 1 a chapter or link is wrong; 3 a program is missing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import documents
import flags
import llms
from built import faults_of_book
from staging import Fault, Staging

ROOT = Path(__file__).resolve().parent.parent.parent
MISSING = "mdbook, which builds the book, is missing. Install it: cargo install --locked mdbook"


def main() -> int:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--brimful", type=Path, default=target / "release" / "brimful", help="the program to describe")
    parser.add_argument("--out", type=Path, default=target / "book", help="the directory of the built book")
    arguments = parser.parse_args()
    if shutil.which("mdbook") is None:
        return fail(3, MISSING)
    if not os.access(arguments.brimful, os.X_OK):
        return fail(3, f"{arguments.brimful} is missing: run `make build` first, or name the program with --brimful")
    try:
        build(arguments.brimful.resolve(), arguments.out.resolve())
    except Fault as fault:
        return fail(1, str(fault))
    print(f"The book is in {arguments.out}: open {arguments.out / 'index.html'}")
    return 0


def build(brimful: Path, out: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="brimful-book-") as scratch:
        staging = Staging(ROOT, Path(scratch))
        staging.add("flags.md", flags.pages(brimful))
        staging.add("documents.md", documents.pages(ROOT / "schema"))
        staging.write()
        shutil.rmtree(out, ignore_errors=True)
        run("mdbook", "build", "--dest-dir", str(out), scratch)
        staging.copy_markdown(out)
        (out / "llms.txt").write_text(llms.text(staging))
    if faults := faults_of_book(out):
        raise Fault("\n".join(faults))


def run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    # If mdBook cannot read a page, it writes a message to stderr and continues.
    complaints = [line for line in done.stderr.splitlines() if "WARN" in line or "ERROR" in line]
    if done.returncode or complaints:
        raise Fault(f"{' '.join(command)}: {done.stderr}")


def fail(code: int, message: str) -> int:
    print(f"book: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
