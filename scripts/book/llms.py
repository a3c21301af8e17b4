"""The text of `llms.txt` (llmstxt.org): links to the book's pages in Markdown, each with the page's first sentence."""

import re

from staging import CHAPTER, Staging, place, staged, stretches

INTRO = """# brimful

> brimful measures how much traffic a web server can take and where its time goes, predicts what it will need next, and
> says how far the figures can be trusted. It is a program for Linux with a command for each task.

Each link is a page of the manual in Markdown. The same page for browsers ends in `.html`.
"""


def text(staging: Staging) -> str:
    out = [INTRO]
    for line in staging.summary:
        chapter = CHAPTER.match(line)
        if line.startswith("# ") and line != "# Summary":
            out.append(f"\n## {line[2:]}\n\n")
        elif chapter and chapter[1]:
            name = place("docs", chapter[3])
            out.append(f"- [{chapter[2]}]({staged(name)}): {first_sentence(staging.read(name))}\n")
    return "".join(out)


def first_sentence(page: str) -> str:
    """The first sentence of a page's first paragraph, without links. Titles, tables, lists and code are no paragraphs."""
    prose = "".join(text for in_code, text in stretches(page) if not in_code)
    paragraphs = [part for part in re.split(r"\n\s*\n", prose) if part.strip() and not re.match(r"\s*[#|!<-]|    ", part)]
    first = " ".join((paragraphs or [""])[0].split())
    first = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", first)
    return re.split(r"(?<=\.)\s+(?=[A-Z`]|$)", first)[0].rstrip(":")
