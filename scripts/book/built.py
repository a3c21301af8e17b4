"""Checks a built book: its links resolve, and it loads nothing from elsewhere."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Generated pages that repeat the content of other pages. Their links are not checked, because they are relative to the
#: other pages.
SKIPPED = {"print.html", "404.html", "toc.html"}


class Page(HTMLParser):
    """The anchors, links and loaded files of a page."""

    def __init__(self, path: Path):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag in ("link", "script", "img", "iframe", "source"):
            self.loaded += [value for key in ("href", "src") if (value := values.get(key))]


def faults_of_book(book: Path) -> list[str]:
    """One line for each link that leads nowhere, and for each file that would be loaded from the network."""
    faults = []
    for path in sorted(book.rglob("*.html")):
        if path.name in SKIPPED:
            continue
        page, name = read(path), path.relative_to(book)
        for url in page.loaded:
            if urlsplit(url).scheme not in ("", "data") or url.startswith("//"):
                faults.append(f"{name} loads {url}: the book must work offline")
        for url in [*page.links, *page.loaded]:
            parts = urlsplit(url)
            if parts.scheme or url.startswith("//"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                faults.append(f"{name} links to {url}, which is not in the book")
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in read(target).anchors:
                faults.append(f"{name} links to {url}, which has no such section")
    for path in book.rglob("*.css"):
        faults += [f"{path.name} loads {url}" for url in re.findall(r"url\([\"']?(https?:[^)]*)", path.read_text())]
    return faults


@cache
def read(path: Path) -> Page:
    return Page(path)
