/** Single keys for everything that is done often. They do nothing while a field or a dialog has the focus. */

import { anyOpen, showKeys } from "./dialogs.js";

const SHORTCUTS = [
  [["1", "…", "9"], "give the node that is shown the class of this key, and go on"],
  [["n"], "a new class"],
  [["o"], "choose any class by typing"],
  [["Space"], "skip"],
  [["Backspace"], "take the last decision back"],
  [["b"], "put the node that is shown into the basket"],
  [["g"], "go back to the queue; at its end, show skipped nodes again"],
  [["/"], "search"],
  [["?"], "this list"],
  [["Esc"], "close"],
];
const OFF = "graphfcl.keys-off";
const TYPING = "input, textarea, select, [contenteditable]";
const PRESSED = "button, a, summary";

function active() {
  return sessionStorage.getItem(OFF) === null;
}

function setActive(wanted) {
  if (wanted) sessionStorage.removeItem(OFF);
  else sessionStorage.setItem(OFF, "1");
}

export function openKeys() {
  return showKeys(SHORTCUTS, active(), setActive);
}

/** doing: {digit(number), n(), o(), b(), g(), skip(), undo(), search()}. */
export function startKeys(doing) {
  document.addEventListener("keydown", (event) => {
    const action = actionOf(event, doing);
    if (action === null) return;
    event.preventDefault();
    action();
  });
}

function actionOf(event, doing) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || anyOpen()) return null;
  if (event.target.closest?.(TYPING)) return null;
  if (event.key === "?") return openKeys;
  if (!active()) return null;
  if (event.repeat) return null;
  if (/^[1-9]$/.test(event.key)) return () => doing.digit(Number(event.key));
  if (event.key === " ") return event.target.closest?.(PRESSED) ? null : doing.skip;
  if (event.key === "Backspace") return doing.undo;
  if (event.key === "/") return doing.search;
  if (["n", "o", "b", "g"].includes(event.key)) return doing[event.key];
  return null;
}
