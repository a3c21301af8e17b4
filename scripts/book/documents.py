"""The chapters about documents: every field, from the JSON Schemas, which are generated from the types."""

import json
import re
from pathlib import Path

INTRO = """# Documents

Every command with `--json` or `--out` writes one of these documents. Their names, units and types are stable: a field
keeps its meaning for as long as the number in `schema` (`brimful.record/1`) stays, and a test ensures this. New fields
may be added. Units are in the names: `_us` is microseconds, `_s` seconds, `_per_s` a rate, `_bytes` bytes, `_share` a
share from 0 to 1. These pages are generated from the JSON Schemas in `schema/` when the book is built.

| document | content |
|---|---|
"""
COMMON = "common.schema.json"


def pages(directory: Path) -> dict[str, tuple[str, str]]:
    """The overview and a page for each document, with titles; the last one has the types that documents share."""
    schemas = {path.name: json.loads(path.read_text()) for path in sorted(directory.glob("*.schema.json"))}
    common = schemas.pop(COMMON)
    overview, chapters = INTRO, {}
    for file, schema in schemas.items():
        name = file.removesuffix(".schema.json")
        page = file_of(file)
        description = sentence(schema.get("description", ""))
        overview += f"| [`{name}`]({page}) | {cell(description)} |\n"
        text = [f"# The document `{name}`", "", description, ""]
        text += [f"Its JSON Schema is [{file}](../schema/{file}).", "", *fields(schema, page), ""]
        chapters[page] = (name, "\n".join(text + definitions(schema, page)))
    text = ["# Types that documents share", "", f"Their JSON Schema is [{COMMON}](../schema/{COMMON}).", ""]
    page = file_of(COMMON)
    overview += f"| [types]({page}) | Types that several documents share. |\n"
    chapters[page] = ("types that documents share", "\n".join(text + definitions(common, page)))
    return {"documents.md": ("Documents", overview), **chapters}


def file_of(schema: str) -> str:
    return f"document-{schema.removesuffix('.schema.json')}.md"


def definitions(schema: dict, page: str) -> list[str]:
    out = []
    for name, definition in sorted(schema.get("$defs", {}).items()):
        out += [f"## {name}", "", sentence(definition.get("description", "")), "", *fields(definition, page), ""]
    return out


def fields(schema: dict, page: str) -> list[str]:
    """A table of an object's fields, or a line about any other type."""
    properties = schema.get("properties")
    if not properties:
        alternatives = schema.get("oneOf") or schema.get("anyOf") or []
        constants = [part for part in alternatives if "const" in part or "enum" in part]
        if constants and len(constants) == len(alternatives):
            rows = [(part.get("const") or " ".join(part["enum"]), part.get("description", "")) for part in constants]
            return ["| value | meaning |", "|---|---|", *(f"| `{value}` | {cell(sentence(text))} |" for value, text in rows)]
        out = []
        for part in alternatives:
            if part.get("properties"):
                out += [sentence(part.get("description", "")), "", *fields(part, page), ""]
            else:
                out += [f"- {kind(part, page)} {sentence(part.get('description', ''))}"]
        return out or [f"Type: {kind(schema, page)}."]
    required = set(schema.get("required", []))
    out = ["| field | type | meaning |", "|---|---|---|"]
    for name, field in properties.items():
        shown = f"`{name}`" if name in required else f"`{name}` ?"
        out.append(f"| {shown} | {cell(kind(field, page))} | {cell(sentence(field.get('description', '')))} |")
    if required != set(properties):
        out += ["", "Fields with ? may be absent."]
    return out


def kind(schema: object, page: str) -> str:
    """The type of a field, with links to types that have a section."""
    if not isinstance(schema, dict):
        return "any"
    if reference := schema.get("$ref"):
        file, _, name = reference.rpartition("#/$defs/")
        return f"[{name}]({file_of(file) if file else ''}#{name.lower()})" if name else "this document"
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " · ".join(f"`{value}`" for value in schema["enum"])
    if parts := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(kind(part, page) for part in parts))
    types = schema.get("type", "any")
    types = types if isinstance(types, list) else [types]
    shown = []
    for name in types:
        if name == "array":
            items = schema.get("items") or schema.get("prefixItems", [{}])[0]
            shown.append(f"list of {kind(items, page)}")
        elif name == "object" and isinstance(schema.get("additionalProperties"), dict):
            shown.append(f"map of {kind(schema['additionalProperties'], page)}")
        else:
            shown.append(name)
    return " or ".join(shown)


def sentence(description: str) -> str:
    """A description of a type as prose: links to other types become code."""
    text = re.sub(r"\[(`[^`]+`)\](?:\([^)]*\))?", r"\1", " ".join(description.split()))
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([<>*_\[\]])", r"\\\1", part) for part in parts)


def cell(text: str) -> str:
    return text.replace("|", r"\|")
