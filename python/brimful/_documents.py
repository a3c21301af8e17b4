"""The base of all documents: reads and shows them."""

from __future__ import annotations

import dataclasses
import functools
import html
import importlib
import json
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T", bound="Part")


class Part:
    """A part of a document: a dataclass. The names of its fields contain their units."""

    @classmethod
    def from_json(cls: type[T], value: dict[str, Any]) -> T:
        """Converts parsed JSON. Fields of newer versions are only in the `source` of the document."""
        return typing.cast(T, _convert(cls, value))


class Document(Part):
    """A document that a command has written, with the command's output."""

    #: The whole document as parsed JSON.
    source: typing.ClassVar[dict[str, Any]] = {}
    #: The text report that the command printed.
    text: typing.ClassVar[str] = ""
    #: The report page as HTML, if the command makes one.
    page: typing.ClassVar[str | None] = None
    #: The exit code of the command: 0 success, 1 an objective was missed, 3 a problem of this host, 4 the load
    #: generator was the limit. A command that writes no document raises an exception instead.
    exit_code: typing.ClassVar[int] = 0

    @classmethod
    def from_json(cls: type[T], value: dict[str, Any]) -> T:
        document = _convert(cls, value)
        document.source = value
        return typing.cast(T, document)

    @classmethod
    def load(cls: type[T], path: str | Path) -> T:
        """Reads a file that a command wrote with `--out`."""
        return cls.from_json(json.loads(Path(path).read_text()))

    def save(self, path: str | Path) -> None:
        """Writes the document to a file, which other commands can read."""
        Path(path).write_text(json.dumps(self.source))

    def __str__(self) -> str:
        return self.text or repr(self)

    def _repr_html_(self) -> str:
        """Shows the report page in notebooks, or the text if there is no page."""
        if self.page is None:
            return f"<pre>{html.escape(str(self))}</pre>"
        attributes = 'style="width:100%;height:44em;border:0" sandbox="allow-scripts"'
        return f'<iframe {attributes} srcdoc="{html.escape(self.page)}"></iframe>'

    def rows(self) -> list[dict[str, Any]]:
        """Returns the intervals, each as a flat dict. The key of a nested value is `PART_NAME`; lists are left out."""
        return [_flatten(interval) for interval in self.source.get("intervals") or []]

    def to_arrow(self) -> Any:
        """Returns the intervals as a `pyarrow.Table` (needs pyarrow)."""
        return importlib.import_module("pyarrow").Table.from_pylist(_with_same_columns(self.rows()))

    def to_pandas(self) -> Any:
        """Returns the intervals as a `pandas.DataFrame` (needs pandas)."""
        return importlib.import_module("pandas").DataFrame(_with_same_columns(self.rows()))


def _with_same_columns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Gives all rows the same columns: a value that a row lacks is None."""
    columns = dict.fromkeys(key for row in rows for key in row)
    return [{key: row.get(key) for key in columns} for row in rows]


def _flatten(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flattened: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            flattened.update(_flatten(item, f"{prefix}{key}_"))
        elif not isinstance(item, list):
            flattened[prefix + key] = item
    return flattened


@functools.cache
def _fields(cls: Any) -> list[tuple[str, str, Any]]:
    """Returns the attribute, the JSON key and the type of each field."""
    hints = typing.get_type_hints(cls)
    fields = dataclasses.fields(cls)
    return [(field.name, field.metadata.get("key", field.name), hints[field.name]) for field in fields]


def _convert(kind: Any, value: Any) -> Any:
    """Converts a JSON value to this type. A value of another type stays as it is."""
    if isinstance(kind, str):
        return value
    if isinstance(kind, type) and issubclass(kind, Part):
        if not isinstance(value, dict):
            raise TypeError(
                f"{kind.__name__} is an object, but this is {value!r:.60}: get the document from its source again"
            )
        return kind(**{name: _convert(hint, value.get(key)) for name, key, hint in _fields(typing.cast(Any, kind))})
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        parts = [part for part in arguments if _looks_like(part, value)]
        return _convert(parts[0], value) if parts else value
    if origin is list and isinstance(value, list):
        return [_convert(arguments[0], item) for item in value]
    if origin is tuple and isinstance(value, list):
        return tuple(_convert(part, item) for part, item in zip(arguments, value))
    if origin is dict and isinstance(value, dict):
        return {key: _convert(arguments[1], item) for key, item in value.items()}
    return value


def _looks_like(kind: Any, value: Any) -> bool:
    """Whether a JSON value may be of this type."""
    if kind is type(None):
        return value is None
    origin = typing.get_origin(kind) or kind
    if isinstance(origin, type) and issubclass(origin, Part):
        return isinstance(value, dict)
    return isinstance(origin, type) and isinstance(value, origin)
