"""The chapters about commands and flags, from the man pages that `brimful man` writes from the parser of the flags."""

import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

INTRO = """# Commands and flags

These pages are generated from the program when the book is built, so they have every flag. `brimful COMMAND -h` shows
the usual flags of a command, `--help` all of them, and `brimful help COMMAND` explains each.

| command | purpose |
|---|---|
"""
#: Sections of a man page that become the first sections of the book's page, in this order.
SYNOPSIS, OPTIONS, EXTRA = "SYNOPSIS", "OPTIONS", "EXTRA"
#: Sections of a man page that the book leaves out, because the overview or the title of the page contains the same.
SKIPPED = {"NAME", "VERSION", "AUTHORS", "SUBCOMMANDS"}


@dataclass
class Section:
    """Paragraphs, and below them flags: each with its term and the lines that describe it."""

    title: str
    lines: list[str] = field(default_factory=list)
    flags: list[tuple[str, list[str]]] = field(default_factory=list)


def pages(brimful: Path) -> dict[str, tuple[str, str]]:
    """The overview and a page for each command, with titles."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([brimful, "man", scratch], check=True, capture_output=True)
        manuals = {path.stem: path.read_text() for path in sorted(Path(scratch).glob("*.1"))}
    overview, chapters = INTRO, {}
    for name, manual in manuals.items():
        sections = parse(manual)
        command = command_of(sections[SYNOPSIS].lines[0])
        purpose = sections["NAME"].lines[0].partition(" - ")[2]
        if command == "brimful":
            continue
        file = f"flag-{name.removeprefix('brimful-')}.md"
        overview += f"| [`{command}`]({file}) | {purpose} |\n"
        chapters[file] = (command, page(command, sections))
    return {"flags.md": ("Commands and flags", overview), **chapters}


def command_of(synopsis: str) -> str:
    """The words of a command, which precede its flags and arguments."""
    return re.split(r" [\[<]", synopsis)[0].strip()


def page(command: str, sections: dict[str, Section]) -> str:
    out = [f"# {command}", "", *sections["DESCRIPTION"].lines, "", "```text", usage(sections[SYNOPSIS].lines[0]), "```", ""]
    if examples := sections.get(EXTRA):
        commands = [line for line in examples.lines if line != "Examples:"]
        out += ["```text", *(line.removeprefix("  ") for line in commands), "```", ""]
    described = {"DESCRIPTION", SYNOPSIS, EXTRA} | SKIPPED
    for title, section in sections.items():
        if title in described:
            continue
        out += [f"## {title.capitalize()}", ""]
        for term, lines in section.flags:
            name, _, default = term.partition(" [default: ")
            out += [f"### `{name}`", "", *lines, ""]
            out += [f"Default: `{default.rstrip(']')}`", ""] if default else []
    return "\n".join(out)


def usage(synopsis: str) -> str:
    """The synopsis without its list of flags, which follows."""
    return re.sub(r"( \[-[^\]]*\])+", " [FLAGS]", synopsis, count=1).strip()


def parse(manual: str) -> dict[str, Section]:
    """Sections by title."""
    sections: dict[str, Section] = {}
    section, expects_term = Section(""), False
    for line in manual.splitlines():
        request, _, argument = line.partition(" ")
        if request == ".SH":
            section = sections.setdefault(argument, Section(argument))
        elif request == ".TP":
            expects_term = True
        elif request == ".IP":
            section.flags[-1][1].append("- ")
        elif request.startswith("."):
            continue
        elif expects_term:
            section.flags.append((plain(line), []))
            expects_term = False
        elif section.flags:
            lines = section.flags[-1][1]
            # In roff, the marker of a list item is on a separate line before the item's text.
            if lines and lines[-1] == "- ":
                lines[-1] += prose(line)
            else:
                lines.append(prose(line))
        else:
            section.lines.append(plain(line) if section.title in (SYNOPSIS, EXTRA, "NAME") else prose(line))
    return sections


def plain(line: str) -> str:
    """A line without the escapes and fonts of roff."""
    line = re.sub(r"\\f[A-Z]", "", line)
    return line.replace(r"\-", "-").replace(r"\*(Aq", "'").replace(r"\&", "").replace(r"\\", "\\").strip("\n")


def prose(line: str) -> str:
    """A line of Markdown. Characters that HTML or Markdown would interpret are escaped outside of code."""
    parts = re.split(r"(`[^`]*`)", plain(line))
    return "".join(part if part.startswith("`") else re.sub(r"([<>*_\[\]])", r"\\\1", part) for part in parts)
