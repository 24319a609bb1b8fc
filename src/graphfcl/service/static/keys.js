/** Single keys for frequent actions. They do nothing while a field or a dialog has the focus. */

import { anyOpen, showKeys } from "./dialogs.js";
import { byId } from "./dom.js";
import { say } from "./status.js";

const SHORTCUTS = [
  [["1", "…", "9"], "give the node that is shown the class of this key, and go on"],
  [["n"], "a new class"],
  [["o"], "choose any class by typing"],
  [["Space"], "skip"],
  [["Backspace"], "take the last decision back"],
  [["b"], "put the node that is shown into the basket"],
  [["m"], "a note that is kept with the next label of the node that is shown"],
  [["g"], "go back to the queue; at its end, show skipped nodes again"],
  [["/"], "search"],
  [["?"], "this list"],
  [["Esc"], "close; from anywhere else, back to the question"],
  [["← → ↑ ↓"], "move inside a list of buttons, which the Tab key visits once"],
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

/** doing: {digit(number), n(), o(), b(), g(), m(), skip(), undo(), search()}. */
export function startKeys(doing) {
  document.addEventListener("keydown", (event) => {
    const action = actionOf(event, doing);
    if (action === null) return;
    event.preventDefault();
    action();
  });
}

/** Moves the focus to the question, or to its panel if there is none. */
export function focusQuestion() {
  (byId("question") ?? byId("question-panel")).focus({ preventScroll: true });
}

/** The button outside the question that has the keyboard focus, or null; keys there do not answer the question. */
function buttonElsewhere(event) {
  const pressed = event.target.closest?.(PRESSED);
  return pressed && pressed.matches(":focus-visible") && !byId("labelling").contains(pressed) ? pressed : null;
}

function refuse(where) {
  const name = where.getAttribute("aria-label") ?? where.textContent.trim();
  say(`Nothing was labelled, as the focus is on “${name}”. Press Esc to go back to the question.`);
}

function actionOf(event, doing) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || anyOpen()) return null;
  if (event.key === "Escape") return focusQuestion;
  if (event.target.closest?.(TYPING)) return null;
  if (event.key === "?") return openKeys;
  if (!active()) return null;
  if (event.repeat) return null;
  const elsewhere = buttonElsewhere(event);
  if (elsewhere && /^([1-9]|Backspace)$/.test(event.key)) return () => refuse(elsewhere);
  if (/^[1-9]$/.test(event.key)) return () => doing.digit(Number(event.key));
  if (event.key === " ") return event.target.closest?.(PRESSED) ? null : doing.skip;
  if (event.key === "Backspace") return doing.undo;
  if (event.key === "/") return doing.search;
  if (["n", "o", "b", "g", "m"].includes(event.key)) return doing[event.key];
  return null;
}
