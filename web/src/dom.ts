// Creates elements. Strings are always inserted as text, never parsed as HTML.

export type Child = Node | string | null | undefined;

// Control characters, and characters that change the writing direction. With these, a name in a document could be made
// to look like another name.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text with its invisible characters shown as escapes. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** An HTML element with attributes and children. Attributes that are undefined are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string | number | undefined> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(key, visible(String(value)));
  }
  element.append(...children.filter((child) => child != null).map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
}

/** An SVG element, for markers in legends. */
export function svg(name: string, attributes: Record<string, string | number>, ...children: Node[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}
