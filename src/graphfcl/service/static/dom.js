/** Helpers to build the page. Strings are always set as text, so markup in a name is never interpreted. */

/**
 * An element with attributes and children. A child is an element, a text, or null (left out).
 * Attributes: `class`, `on` ({event: handler}), `share` (0..1, the length of a bar); null and false are left out.
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) made.addEventListener(event, handler);
    } else if (name === "share") {
      made.style.setProperty("--share", String(Math.min(1, Math.max(0, value))));
    } else {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(made, children);
  return made;
}

function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces all children of an element. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

export function byId(id) {
  return document.getElementById(id);
}

export function button(text, press, attributes = {}) {
  return element("button", { type: "button", ...attributes, on: { click: press } }, text);
}

/** A button with the text of a node's id, which shows that node. */
export function nodeButton(id, show, attributes = {}) {
  return button(id, () => show(id), { class: "node", title: `Show ${id}`, ...attributes });
}

export function percent(share, digits = 0) {
  if (share === null || share === undefined || Number.isNaN(share)) return "not measured";
  return `${(100 * share).toFixed(digits)} %`;
}

/** A horizontal bar beside a name; the bar is hidden from screen readers because the number is read out. */
export function bar(name, share, attributes = {}) {
  return element(
    "li",
    { class: "bar", ...attributes },
    element("span", { class: "bar-name" }, name),
    element("span", { class: "bar-number" }, percent(share)),
    element("span", { class: "bar-track", "aria-hidden": "true" }, element("span", { class: "bar-fill", share })),
  );
}

export function sentence(text, kind = "hint") {
  return element("p", { class: kind }, text);
}

/** Makes a sentence of a text that may start with a small letter and end without a full stop. */
export function asSentence(text) {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

export function counted(number, one, many = `${one}s`) {
  return `${Number(number).toLocaleString("en")} ${number === 1 ? one : many}`;
}
