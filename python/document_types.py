"""Generates the documents' dataclasses in brimful/documents/ from their JSON Schemas. The tests generate the schemas from
the Rust types.

A schema describes documents that are read, so a field that a document may lack can be None. Names include units, as in
the documents. If a key is not a Python name, the field has it in its metadata.

`make` and the package's build run this program. Its result is not committed.
"""

import json
import keyword
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCHEMAS = HERE.parent / "schema"
PACKAGE = HERE / "brimful" / "documents"
WIDTH = 120
INDENTED = {"initial_indent": "    ", "subsequent_indent": "    "}

#: Names of the schemas of documents, and names of their classes. A class's name may differ from its schema's title,
#: which may be a verb form.
DOCUMENTS = {
    "ab": "AbTest",
    "calibration": "Calibration",
    "comparison": "Comparison",
    "forecast": "Forecast",
    "history": "History",
    "model": "Model",
    "profile": "Profile",
    "record": "Record",
    "server": "Server",
    "site": "Site",
    "solution": "Solution",
    "survey": "Survey",
    "sweep": "Sweep",
    "what-if": "WhatIf",
}


def generate() -> None:
    if not SCHEMAS.exists():
        return  # A source archive has the dataclasses, but no schemas.
    schemas = {name: read_schema(name) for name in DOCUMENTS}
    common = read_schema("common")["$defs"]
    texts = {f"{name.replace('-', '_')}.py": module(name, schema, common) for name, schema in schemas.items()}
    common_docstring = '"""Parts that several documents share. Written by document_types.py from schema/."""'
    texts["common.py"] = source(common_docstring, common, [])
    texts["__init__.py"] = init_module()
    PACKAGE.mkdir(exist_ok=True)
    for name, text in texts.items():
        (PACKAGE / name).write_text(text)


def read_schema(name: str) -> dict:
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text())


def init_module() -> str:
    """The package's `__init__.py`, which exports one name for each document."""
    lines = ['"""The documents as dataclasses. Written by document_types.py from schema/."""', ""]
    modules = sorted((name.replace("-", "_"), title) for name, title in DOCUMENTS.items())
    lines += [f"from .{name} import {title} as {title}" for name, title in modules]
    return "\n".join(lines) + "\n"


def references(schema: object) -> set[str]:
    """The names of the definitions that a schema refers to, at any depth."""
    return set(re.findall(r'"\$ref": "[^"]*#/\$defs/([^"]+)"', json.dumps(schema)))


def module(name: str, schema: dict, common: dict[str, dict]) -> str:
    definitions = schema.get("$defs", {})
    used = references([definitions, schema["properties"]]) & set(common)
    document = dataclass(DOCUMENTS[name], schema, "Document")
    return source(f'"""Written by document_types.py from schema/{name}.schema.json."""', definitions, used, document)


def source(docstring: str, definitions: dict[str, dict], imported: Iterable[str], document: str | None = None) -> str:
    """Returns a module: the classes and aliases of these definitions, then the document's class if there is one."""
    classes = {name: definition for name, definition in definitions.items() if "properties" in definition}
    parts = [dataclass(name, definition, "Part") for name, definition in classes.items()]
    parts += [document] if document else []
    # Write aliases after the classes: unlike annotations, aliases are evaluated when the module is loaded, so the
    # classes must exist.
    aliases = {name: definition for name, definition in definitions.items() if name not in classes}
    parts += [alias(name, aliases[name]) for name in ordered(aliases)]
    body = "\n\n\n".join(parts)
    used = [name for name in ("Any", "Literal", "TypeAlias") if re.search(rf"\b{name}\b", body)]
    head = [docstring, "", "from __future__ import annotations", ""]
    head += ["from dataclasses import dataclass, field" if "= field(" in body else "from dataclasses import dataclass"]
    head += [f"from typing import {', '.join(used)}"] if used else []
    bases = [base for base, is_used in (("Document", document), ("Part", classes)) if is_used]
    head += ["", f"from .._documents import {', '.join(bases)}"]
    if imported:
        head += ["from .common import (", *textwrap.wrap(", ".join(sorted(imported)) + ",", WIDTH, **INDENTED), ")"]
    return "\n".join([*head, "", "", body]) + "\n"


def dataclass(name: str, definition: dict, base: str) -> str:
    lines = ["@dataclass(kw_only=True)", f"class {name}({base}):"]
    lines += docstring(definition.get("description", ""))
    required = set(definition.get("required", []))
    for key, schema in definition["properties"].items():
        lines += [f"    #: {line}" for line in wrapped(schema.get("description", ""), 7)]
        lines.append(f"    {attribute(key, schema, key in required)}")
    return "\n".join(lines)


def alias(name: str, definition: dict) -> str:
    kind = type_of(definition)
    lines = [f"#: {line}" for line in wrapped(definition.get("description", ""), 3)]
    line = f"{name}: TypeAlias = {kind}"
    if len(line) > WIDTH:
        values = kind.removeprefix("Literal[").removesuffix("]").split(", ")
        line = "\n".join([f"{name}: TypeAlias = Literal[", *(f"    {value}," for value in values), "]"])
    return "\n".join([*lines, line])


def ordered(aliases: dict[str, dict]) -> list[str]:
    """Returns the names of the aliases, each after those that it refers to."""
    done: list[str] = []
    while remaining := [name for name in aliases if name not in done]:
        ready = [
            name
            for name in remaining
            if not set(re.findall(r"\w+", type_of(aliases[name]))) & (set(remaining) - {name})
        ]
        # If aliases refer to one another, none is ever ready. `remaining` prevents an endless loop in this case, which
        # does not occur so far.
        done += ready or remaining
    return done


def attribute(key: str, schema: dict, required: bool) -> str:
    name = identifier(key)
    kind = type_of(schema)
    if not required and "None" not in kind.split(" | ") and kind != "Any":
        kind += " | None"
    if name != key:
        default = "" if required else "default=None, "
        return f'{name}: {kind} = field({default}metadata={{"key": "{key}"}})'
    return f"{name}: {kind}" if required else f"{name}: {kind} = None"


def identifier(key: str) -> str:
    name = re.sub(r"\W", "_", key)
    if name[0].isdigit():
        name = f"status_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def type_of(schema: dict | bool) -> str:
    if isinstance(schema, bool) or set(schema) <= {"description"}:
        return "Any"
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "const" in schema:
        return f"Literal[{json.dumps(schema['const'])}]"
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        if all("const" in choice for choice in choices):
            return f"Literal[{', '.join(json.dumps(choice['const']) for choice in choices)}]"
        return " | ".join(dict.fromkeys(type_of(choice) for choice in choices))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " | ".join(simple(kind, schema) for kind in kinds)


def simple(kind: str, schema: dict) -> str:
    if kind == "array":
        if items := schema.get("prefixItems"):
            return f"tuple[{', '.join(type_of(item) for item in items)}]"
        return f"list[{type_of(schema.get('items', True))}]"
    if kind == "object":
        # An object that is defined inline has no class of its own, so its type is a dict.
        return f"dict[str, {type_of(schema.get('additionalProperties', True))}]"
    return {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}[kind]


def docstring(text: str) -> list[str]:
    lines = wrapped(text, 7)
    if not lines:
        return []
    body = [f"    {line}" for line in lines]
    body[0] = '    """' + lines[0]
    return [*body[:-1], body[-1] + '"""'] if len(lines) > 1 else [body[0] + '"""']


def wrapped(text: str, indent: int) -> list[str]:
    plain = re.sub(r"\[`([^`\]]+)`\](\([^)]*\))?", r"`\1`", " ".join(text.split()))
    return textwrap.wrap(plain.replace("\\", "\\\\").replace('"""', "'''"), WIDTH - indent - 3)


if __name__ == "__main__":
    generate()
