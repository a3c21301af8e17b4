"""The text of `llms.txt` (llmstxt.org): the book's pages as a list of links to Markdown, each with its first sentence."""

import re

from staging import CHAPTER, Staging, place, staged

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
    """The first sentence of a page's first paragraph, without links."""
    paragraphs = (part.strip() for part in page.split("\n\n"))
    prose = next((part for part in paragraphs if part and part[0] not in "#|`!-<"), "")
    prose = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(prose.split()))
    return re.split(r"(?<=[.:])\s+(?=[A-Z`\[]|$)", prose)[0]
