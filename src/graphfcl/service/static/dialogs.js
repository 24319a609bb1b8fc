/** Modal dialogs. The browser keeps the focus inside; Escape closes them and restores the focus. */

import { button, byId, element } from "./dom.js";
import { keepSignature, keepToken, signature, token } from "./token.js";

let numbered = 0;

/**
 * Opens a box and resolves to the value given to `close`, or to null if it was closed in another way.
 * build(close) makes the content; an element with the attribute `autofocus` gets the focus. When the box closes, the
 * focus of a keyboard user returns to where it was; otherwise it goes to the question.
 */
export function open(title, build) {
  numbered += 1;
  const heading = `dialog-${numbered}`;
  const opener = document.activeElement;
  const goesBack = opener !== document.body && opener?.matches(":focus-visible");
  return new Promise((resolve) => {
    let result = null;
    const close = (value) => {
      result = value;
      box.close();
    };
    const form = element("form", { method: "dialog" }, element("h2", { id: heading }, title), build(close));
    const box = element("dialog", { "aria-labelledby": heading }, form);
    box.addEventListener("close", () => {
      box.remove();
      if (!goesBack || !opener.isConnected) byId("question")?.focus({ preventScroll: true });
      resolve(result);
    });
    document.body.append(box);
    box.showModal();
  });
}

export function anyOpen() {
  return document.querySelector("dialog[open]") !== null;
}

export function field(label, attributes, hint = null) {
  const input = element("input", { autocomplete: "off", spellcheck: "false", ...attributes });
  return { input, row: element("label", {}, label, input, hint && element("span", { class: "hint" }, hint)) };
}

export function actions(...buttons) {
  return element("div", { class: "actions" }, buttons);
}

export function submit(text, press, attributes = {}) {
  return element("button", { type: "submit", class: "primary", ...attributes, on: { click: press } }, text);
}

/** Resolves to true if the action was confirmed. */
export async function confirmed(title, text, action) {
  const answer = await open(title, (close) => [
    element("p", {}, text),
    actions(
      submit(action, (event) => (event.preventDefault(), close(true))),
      button("Cancel", () => close(null), { autofocus: true }),
    ),
  ]);
  return answer === true;
}

/**
 * Asks for a name. Resolves to {name, action} or null. actions: [[key, text], ...], the first one is taken by Enter.
 */
export function askName(title, { label = "Name", value = "", hint = null, longest = 200, choices = [["take", "OK"]] } = {}) {
  return open(title, (close) => {
    const { input, row } = field(label, { value, required: true, maxlength: longest, autofocus: true }, hint);
    const take = (action) => (event) => {
      event.preventDefault();
      const name = input.value.trim();
      if (name) close({ name, action });
      else input.focus();
    };
    const [first, ...others] = choices;
    return [
      row,
      actions(
        submit(first[1], take(first[0])),
        others.map(([action, text]) => button(text, take(action))),
        button("Cancel", () => close(null)),
      ),
    ];
  });
}

/** Whether the user means a new class; asks if the name looks like one of `names`. */
export async function meansNew(name, names) {
  const bare = (text) => text.normalize("NFKD").replace(/[\p{M}\s]/gu, "").toLowerCase();
  const alike = names.find((each) => each !== name && bare(each) === bare(name));
  if (alike === undefined || names.includes(name)) return true;
  return confirmed("A new class?", `There is a class “${alike}”. “${name}” would be another one.`, "Teach a new class");
}

/** Asks for the token and the user's name; resolves to true if something was entered. */
export async function askToken(reason) {
  const answer = await open("Token", (close) => {
    const secret = field(
      "Token",
      { type: "password", value: token(), autofocus: true },
      "The service prints it when it starts. It stays in this tab and is gone when you close it.",
    );
    const name = field("Your name (optional)", { value: signature(), maxlength: 100 }, "Kept with each label you give.");
    const keep = (event) => {
      event.preventDefault();
      keepToken(secret.input.value.trim());
      keepSignature(name.input.value.trim());
      close(true);
    };
    return [
      reason && element("p", {}, reason),
      secret.row,
      name.row,
      actions(submit("Keep", keep), button("Cancel", () => close(null))),
    ];
  });
  return answer === true;
}

/** Shows the list of keys; resolves when it is closed. shortcuts: [[keys, meaning], ...]. */
export function showKeys(shortcuts, active, setActive) {
  return open("Keys", (close) => {
    const box = element("input", { type: "checkbox", on: { change: () => setActive(box.checked) } });
    box.checked = active;
    const rows = shortcuts.map(([keys, meaning]) =>
      element("div", {}, element("dt", {}, keys.map((key) => element("kbd", {}, key))), element("dd", {}, meaning)),
    );
    return [
      element("dl", { class: "keys" }, rows),
      element("label", { class: "check" }, box, "Use these keys"),
      element("p", { class: "hint" }, "They do nothing while you type in a field."),
      actions(submit("Close", (event) => (event.preventDefault(), close(null)), { autofocus: true })),
    ];
  });
}
