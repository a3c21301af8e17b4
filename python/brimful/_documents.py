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
        """Reads it from JSON. Fields of newer versions are ignored here, and kept in the document's `source`."""
        return typing.cast(T, _read(cls, value))


class Document(Part):
    """A document that a command has written, with the command's output."""

    #: The whole document as parsed JSON.
    source: typing.ClassVar[dict[str, Any]] = {}
    #: What the command printed.
    text: typing.ClassVar[str] = ""
    #: The report's page, if the command makes one.
    page: typing.ClassVar[str | None] = None
    #: The exit code of the command: 0 success; 1 an objective was missed; 4 the generator was the limit. All other codes
    #: raise exceptions.
    exit_code: typing.ClassVar[int] = 0

    @classmethod
    def from_json(cls: type[T], value: dict[str, Any]) -> T:
        document = _read(cls, value)
        document.source = value
        return typing.cast(T, document)

    @classmethod
    def load(cls: type[T], path: str | Path) -> T:
        """Reads the file that a command wrote by `--out`."""
        return cls.from_json(json.loads(Path(path).read_text()))

    def save(self, path: str | Path) -> None:
        """Writes it, for the commands that read such documents."""
        Path(path).write_text(json.dumps(self.source))

    def __str__(self) -> str:
        return self.text or repr(self)

    def _repr_html_(self) -> str:
        """Shows the report's page in notebooks, or the text if there is none."""
        if self.page is None:
            return f"<pre>{html.escape(str(self))}</pre>"
        attributes = 'style="width:100%;height:44em;border:0" sandbox="allow-scripts"'
        return f'<iframe {attributes} srcdoc="{html.escape(self.page)}"></iframe>'

    def rows(self) -> list[dict[str, Any]]:
        """Returns the intervals, each with all its numbers. A number of a part is named after the part and itself."""
        return [_flat(interval) for interval in self.source.get("intervals") or []]

    def to_arrow(self) -> Any:
        """The intervals as a `pyarrow.Table` (needs pyarrow)."""
        return importlib.import_module("pyarrow").Table.from_pylist(_complete(self.rows()))

    def to_pandas(self) -> Any:
        """The intervals as a `pandas.DataFrame` (needs pandas)."""
        return importlib.import_module("pandas").DataFrame(_complete(self.rows()))


def _complete(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows with the same columns: a value that a row lacks is null."""
    columns = dict.fromkeys(key for row in rows for key in row)
    return [{key: row.get(key) for key in columns} for row in rows]


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            flat.update(_flat(item, f"{prefix}{key}_"))
        elif not isinstance(item, list):
            flat[prefix + key] = item
    return flat


@functools.cache
def _fields(cls: Any) -> list[tuple[str, str, Any]]:
    """Returns attribute, JSON key and type of each field."""
    hints = typing.get_type_hints(cls)
    fields = dataclasses.fields(cls)
    return [(field.name, field.metadata.get("key", field.name), hints[field.name]) for field in fields]


def _read(kind: Any, value: Any) -> Any:
    """Converts a value to its type. A value of another type stays as it is."""
    if isinstance(kind, str):
        return value
    if isinstance(kind, type) and issubclass(kind, Part):
        if not isinstance(value, dict):
            raise TypeError(
                f"{kind.__name__} is an object, and this is {value!r:.60}: take the document from its source again"
            )
        return kind(**{name: _read(hint, value.get(key)) for name, key, hint in _fields(typing.cast(Any, kind))})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        parts = [part for part in arguments if _may_be(part, value)]
        return _read(parts[0], value) if parts else value
    if origin is list and isinstance(value, list):
        return [_read(arguments[0], item) for item in value]
    if origin is tuple and isinstance(value, list):
        return tuple(_read(part, item) for part, item in zip(arguments, value))
    if origin is dict and isinstance(value, dict):
        return {key: _read(arguments[1], item) for key, item in value.items()}
    return value


def _may_be(kind: Any, value: Any) -> bool:
    """Whether a value looks like one of this type."""
    if kind is type(None):
        return value is None
    origin = typing.get_origin(kind) or kind
    if isinstance(origin, type) and issubclass(origin, Part):
        return isinstance(value, dict)
    return isinstance(origin, type) and isinstance(value, origin)
