"""Runs a command like a function: arguments become flags, and the document that the command writes is the result."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from . import _binary
from ._documents import Document
from ._scratch import Scratch

D = TypeVar("D", bound=Document)

#: Exit codes of a command that may have written its document.
DOCUMENT_EXIT_CODES = (0, 1, 3, 4)


def to_flags(flags: Mapping[str, Any]) -> list[str]:
    """Returns the flags of a command line: `calls_per_connection=3` becomes `--calls-per-connection=3`.

    >>> to_flags({"rate": 1000, "new_connection": True, "insecure": False, "header": ["A: b", "C: d"], "seed": None})
    ['--rate=1000', '--new-connection', '--header=A: b', '--header=C: d']
    >>> to_flags({"duration": timedelta(milliseconds=1500), "tick": 0.001})
    ['--duration=1500000us', '--tick=0.001']
    """
    return [word for name, value in flags.items() for word in _flag("--" + name.replace("_", "-"), value)]


def _flag(flag: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if isinstance(value, timedelta):
        return [f"{flag}={value // timedelta(microseconds=1)}us"]
    if isinstance(value, (list, tuple)):
        return [word for item in value for word in _flag(flag, item)]
    return [f"{flag}={value}"]


def run_command(
    kind: type[D],
    command: Sequence[str],
    arguments: Sequence[str],
    flags: Mapping[str, Any],
    *,
    page: str | None = None,
    json_flag: bool = False,
    on_line: Callable[[str], None] | None = None,
) -> D:
    """Runs a command and reads the document that it writes.

    `page` is the command's flag for the report page. With `json_flag`, the document is read from stdout (`--json`), for
    commands whose `--out` writes something else; the result then has no text.
    """
    with Scratch() as directory:
        out = Path(directory, "document.json")
        html = Path(directory, "page.html")
        line = [*command, *to_flags(flags)]
        line += ["--json"] if json_flag else [f"--out={out}"]
        line += [f"{page}={html}"] if page else []
        finished = _binary.run([*line, "--", *arguments], on_line)
        text = finished.stdout if json_flag else _content(out)
        document = _document(kind, text) if text and finished.code in (*DOCUMENT_EXIT_CODES, 130) else None
        if document is not None:
            document.text = "" if json_flag else finished.stdout  # type: ignore[misc]
            document.page = _content(html)  # type: ignore[misc]
            document.exit_code = finished.code  # type: ignore[misc]
    if finished.code == 130 or finished.interrupted:
        interrupted = _binary.Interrupted()
        interrupted.result = document
        raise interrupted
    if document is None:
        raise _binary.exception_of(finished)
    return document


def _document(kind: type[D], text: str) -> D | None:
    try:
        return kind.from_json(json.loads(text))
    except json.JSONDecodeError:
        return None


def _content(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


@contextlib.contextmanager
def as_files(documents: Sequence[Any], suffix: str = ".json") -> Iterator[list[str]]:
    """Yields the paths of files with these documents. A path stays as it is; any other document is written to a
    temporary file."""
    with Scratch() as directory:
        yield [_file(document, Path(directory, f"{number}{suffix}")) for number, document in enumerate(documents, 1)]


def _file(document: Any, path: Path) -> str:
    if isinstance(document, (str, os.PathLike)):
        return os.fspath(document)
    if isinstance(document, Document):
        document.save(path)
    elif isinstance(document, Mapping):
        path.write_text(json.dumps(document))
    else:
        raise _binary.UsageError(
            f"a document is a path, a mapping of its JSON or a result, but this is {document!r:.60}", 2
        )
    return str(path)
