"""The source tree from which mdBook builds the book: the chapters of docs/SUMMARY.md, and the files they link to."""

import os
import re
import shutil
from collections import Counter
from pathlib import Path

#: A relative link or picture in Markdown: its text, its target and its anchor. Absolute URLs do not match.
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\((?!https?:|mailto:)([^()\s#]*)(#[^()\s]+)?\)")
CHAPTER = re.compile(r"^( *- )?\[([^\]]+)\]\(([^)]+)\)$")


class Fault(Exception):
    """A chapter or a link that is wrong, with the page that contains it."""


class Staging:
    """The chapters by their path in the repository. `write` copies them to `src/` of the staging directory."""

    def __init__(self, root: Path, directory: Path):
        self.root = root
        self.source = directory / "src"
        self.directory = directory
        self.summary = (root / "docs/SUMMARY.md").read_text().splitlines()
        chapters = [match for line in self.summary if (match := CHAPTER.match(line))]
        #: Titles of the chapters by path in the repository, in the order of the book.
        self.chapters = {place("docs", match[3]): match[2] for match in chapters}
        self.generated: dict[str, str] = {}
        repeated = [name for name, count in Counter(place("docs", match[3]) for match in chapters).items() if count > 1]
        pages = {f"docs/{page.name}" for page in (root / "docs").glob("*.md")} - {"docs/SUMMARY.md"}
        if repeated or pages - self.chapters.keys():
            raise Fault(f"docs/SUMMARY.md: listed twice: {repeated}; not listed: {sorted(pages - self.chapters.keys())}")

    def add(self, chapter: str, pages: dict[str, tuple[str, str]]) -> None:
        """Adds a generated chapter. `pages` has the title and the Markdown by file name, first the chapter's own; the
        others become its sub-chapters."""
        for line, text in enumerate(self.summary):
            match = CHAPTER.match(text)
            if match and match[3] == chapter:
                indent = " " * (len(match[1] or "- ") - 2)
                below = [f"{indent}  - [{title}]({name})" for name, (title, _) in pages.items() if name != chapter]
                self.summary[line + 1 : line + 1] = below
                break
        else:
            raise Fault(f"docs/SUMMARY.md does not list {chapter}, which is generated")
        for name, (title, markdown) in pages.items():
            self.chapters[f"docs/{name}"] = title
            self.generated[f"docs/{name}"] = markdown

    def write(self) -> None:
        shutil.copy(self.root / "docs/book.toml", self.directory)
        for css in (self.root / "docs").glob("*.css"):
            shutil.copy(css, self.directory)
        for name in self.chapters:
            self.write_page(name, self.read(name))
        self.write_page("docs/SUMMARY.md", "\n".join(self.summary) + "\n")

    def read(self, name: str) -> str:
        if name in self.generated:
            return self.generated[name]
        try:
            return (self.root / name).read_text()
        except OSError as error:
            raise Fault(f"docs/SUMMARY.md lists {name}: {error.strerror}") from error

    def write_page(self, name: str, text: str) -> None:
        page = self.source / staged(name)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(outside_of_code(text, lambda prose: LINK.sub(lambda link: self.link(name, link), prose)))

    def link(self, page: str, link: re.Match) -> str:
        """The link as it must be in the book."""
        text, target, anchor = link[1], link[2], link[3] or ""
        if not target:
            return link[0]
        name = place(str(Path(page).parent), target)
        if f"{name}/README.md" in self.chapters:
            name += "/README.md"
        path = self.root / name
        if name not in self.chapters:
            if not path.exists():
                raise Fault(f"{page} links to {target}, which does not exist")
            if path.is_dir() or path.suffix == ".md":
                # The file is not a page of the book, so the link is replaced by its text and the file's path.
                return f"{text.strip('![]')} (`{name}` in the source)"
            copy = self.source / staged(name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        # If the text of a link is the file name of a chapter, replace it by the chapter's title.
        if text == f"[{Path(target).name}]" and name in self.chapters:
            text = f"[{self.chapters[name]}]"
        here = Path(staged(page)).parent
        return f"{text}({os.path.relpath(staged(name), here)}{anchor})"

    def copy_markdown(self, out: Path) -> None:
        for page in self.source.rglob("*.md"):
            copy = out / page.relative_to(self.source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(page, copy)


def place(directory: str, target: str) -> str:
    """The path from the root of the repository of a link's target."""
    return os.path.normpath(os.path.join(directory, target))


def staged(name: str) -> str:
    """The path below src/. Pages of docs/ are at the top, other files where they are in the repository. A README.md is
    the index of its directory."""
    return re.sub(r"README\.md$", "index.md", name.removeprefix("docs/"))


def outside_of_code(text: str, change) -> str:
    """Applies a function to the text between fenced code blocks."""
    return "".join(part if in_code else change(part) for in_code, part in stretches(text))


def stretches(text: str) -> list[tuple[bool, str]]:
    """Fenced code blocks (true), and the text before, between and after them."""
    found = [(False, "")]
    for line in text.splitlines(keepends=True):
        in_code, before = found[-1]
        fence = line.lstrip().startswith("```")
        if fence and not in_code:
            found.append((True, line))
        else:
            found[-1] = (in_code, before + line)
            if fence:
                found.append((False, ""))
    return found
