/** The question "which class is it?" about the node that is shown, with the classes and their keys. */

import { button, byId, element, fill } from "./dom.js";
import { askName, chooseClass } from "./dialogs.js";
import { pendingLabel, pendingNames, teach, usedNames } from "./decisions.js";
import { classNames, on, settledCard, state } from "./state.js";
import { say } from "./status.js";

const KEYS = 9;
const LIKELIEST = 5;

let wiring = { goOn: () => undefined, collect: () => undefined };
let offered = [];

export function startLabelling(parts) {
  wiring = parts;
  on("card", draw);
  on("classes", draw);
}

/**
 * The classes that the keys 1 to 9 stand for. Up to nine classes keep their keys for ever. Of more the first five are
 * the likeliest of this node, and the others those that were used last.
 */
export function keyedClasses(names, likeliest, used) {
  if (names.length <= KEYS) return names;
  const first = likeliest.filter((name) => names.includes(name)).slice(0, LIKELIEST);
  const recent = used.filter((name) => names.includes(name) && !first.includes(name)).slice(0, KEYS - first.length);
  const others = likeliest.filter((name) => names.includes(name) && !first.includes(name) && !recent.includes(name));
  return [...first, ...recent, ...others].slice(0, KEYS);
}

function allNames() {
  return [...classNames(), ...pendingNames()];
}

function draw() {
  const card = state.card;
  const place = byId("labelling");
  if (card === null) {
    fill(place);
    return;
  }
  const likeliest = card.classes.map((each) => each.name);
  offered = keyedClasses(allNames(), likeliest, usedNames());
  const label = pendingLabel(card.id) ?? card.label;
  const keys = offered.map((name, position) =>
    element(
      "li",
      {},
      button([element("kbd", {}, position + 1), element("span", {}, name)], () => answer(name), {
        class: "class-key",
        "aria-pressed": label === null ? null : String(label === name),
        "data-guess": name === likeliest[0],
        "aria-keyshortcuts": position + 1,
        "aria-label": name === likeliest[0] ? `${name}, likeliest` : name,
      }),
    ),
  );
  fill(
    place,
    element("h3", { id: "question", tabindex: -1 }, "Which class is ", element("span", { class: "id" }, card.id), "?"),
    label !== null && element("p", { class: "hint" }, "It is labelled ", element("strong", {}, label), "."),
    element("ul", { class: "class-keys", "aria-labelledby": "question" }, keys),
    element("div", { class: "actions" }, [
      keyed("n", "New class", newClass),
      allNames().length > offered.length && keyed("o", "Other class", otherClass),
      keyed("Space", "Skip", () => wiring.goOn()),
      keyed("b", "Into the basket", () => wiring.collect(card.id)),
    ]),
  );
}

function keyed(key, text, press) {
  return button([element("kbd", {}, key), element("span", {}, text)], press, { "aria-label": text });
}

/** The class of a digit's key, counted from 1. */
export function answerByKey(digit) {
  if (settledCard() !== null && digit <= offered.length) answer(offered[digit - 1]);
}

/** Gives the node that is shown a class, and goes on to the next at once. */
function answer(name, fresh = false) {
  if (settledCard() === null) return;
  const { id, label } = state.card;
  const held = byId("labelling").contains(document.activeElement);
  if ((pendingLabel(id) ?? label) === name) say(`${id} is labelled ${name} already.`);
  else teach([{ id, name, before: label, fresh: fresh || pendingNames().includes(name) }]);
  wiring.goOn();
  if (held) byId("question")?.focus({ preventScroll: true });
}

export async function newClass() {
  if (settledCard() === null) return;
  const { id } = state.card;
  const given = await askName("A new class", {
    label: "Name of the class",
    hint: `${id} is its first node. Two to five nodes that differ teach it better: collect them in the basket.`,
    choices: [
      ["teach", "Teach it"],
      ["collect", "Collect more first"],
    ],
  });
  if (given === null || settledCard()?.id !== id) return;
  if (given.action === "collect") wiring.collect(id, given.name);
  else answer(given.name, !classNames().includes(given.name));
}

export async function otherClass() {
  if (settledCard() === null) return;
  const { id } = state.card;
  const name = await chooseClass(`Which class is ${id}?`, allNames());
  if (name !== null && settledCard()?.id === id) answer(name);
}
