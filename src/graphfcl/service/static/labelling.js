/** The question "which class is it?" about the node that is shown, with the classes and their keys. */

import { button, byId, element, fill } from "./dom.js";
import { chooseClass } from "./class_choice.js";
import { classOfKey, givenKeys, giveKeys, KEYS } from "./class_keys.js";
import { pendingLabel, pendingNames, teach, usedNames } from "./decisions.js";
import { askName, meansNew } from "./dialogs.js";
import { classNames, on, loadedCard, state } from "./state.js";
import { say } from "./status.js";

const LIKELY = 0.01; // probability from which a class without a key has a button

let wiring = { goOn: () => undefined, skip: () => undefined, collect: () => undefined };

export function startLabelling(parts) {
  wiring = parts;
  on("card", draw);
  on("classes", draw);
}

function allNames() {
  return [...classNames(), ...pendingNames()];
}

function draw() {
  const names = allNames();
  giveKeys(names, usedNames());
  const card = state.card;
  const place = byId("labelling");
  if (card === null) {
    fill(place);
    return;
  }
  const label = pendingLabel(card.id) ?? card.label;
  const guess = card.unknown ? null : card.classes[0].name;
  const keys = givenKeys().filter(([, name]) => names.includes(name));
  const withKey = keys.map(([, name]) => name);
  const likely = card.classes.filter((each) => each.probability >= LIKELY).map((each) => each.name);
  const withoutKey = likely.filter((name) => names.includes(name) && !withKey.includes(name));
  const more = names.length > withKey.length;
  fill(
    place,
    element("h3", { id: "question", tabindex: -1 }, "Which class is ", element("span", { class: "id" }, card.id), "?"),
    label !== null && element("p", { class: "hint" }, "It is labelled ", element("strong", {}, label), "."),
    keys.length > 0 &&
      element("ul", { class: "class-keys", "aria-labelledby": "question" }, keys.map(([key, name]) => classButton(name, key, label, guess))),
    withoutKey.length > 0 && element("h3", { id: "without-key" }, keys.length > 0 ? "Likely classes without a key" : "Likely classes"),
    withoutKey.length > 0 &&
      element("ul", { class: "class-keys", "aria-labelledby": "without-key" }, withoutKey.map((name) => classButton(name, null, label, guess))),
    more && givenKeys().length < KEYS && element("p", { class: "hint" }, "The first nine classes that you use get keys."),
    element("div", { class: "actions" }, [
      keyed("n", "New class", newClass),
      more && keyed("o", "Other class", otherClass),
      keyed("Space", "Skip", () => wiring.skip()),
      keyed("b", "Into the basket", () => wiring.collect(card.id)),
    ]),
  );
}

function classButton(name, key, label, guess) {
  const content = [key !== null && element("kbd", {}, key), element("span", {}, name)];
  return element(
    "li",
    {},
    button(content, () => answer(name), {
      class: "class-key",
      "aria-pressed": label === null ? null : String(label === name),
      "data-guess": name === guess,
      "aria-keyshortcuts": key,
      "aria-label": name === guess ? `${name}, likeliest` : name,
    }),
  );
}

function keyed(key, text, press) {
  return button([element("kbd", {}, key), element("span", {}, text)], press, { "aria-label": text });
}

/** Gives the node that is shown the class of a digit. */
export function answerByKey(digit) {
  const name = classOfKey(digit);
  if (loadedCard() === null || name === null) return;
  if (allNames().includes(name)) answer(name);
  else say(`Key ${digit} stands for “${name}”, which is gone. Nothing was labelled.`);
}

/** Gives the node that is shown a class, and goes on to the next at once. */
function answer(name, fresh = false) {
  if (loadedCard() === null) return;
  const { id, label } = state.card;
  const held = byId("labelling").contains(document.activeElement);
  if ((pendingLabel(id) ?? label) === name) say(`${id} is labelled ${name} already.`);
  else teach([{ id, name, before: label, fresh: fresh || pendingNames().includes(name) }]);
  wiring.goOn();
  if (held) byId("question")?.focus({ preventScroll: true });
}

export async function newClass() {
  if (loadedCard() === null) return;
  const { id } = state.card;
  const entered = await askName("A new class", {
    label: "Name of the class",
    hint: `${id} is its first node. Two to five nodes that differ teach it better: collect them in the basket.`,
    choices: [
      ["teach", "Teach it"],
      ["collect", "Collect more first"],
    ],
  });
  if (entered === null) return;
  if (entered.action === "teach" && !(await meansNew(entered.name, allNames()))) return;
  if (loadedCard()?.id !== id) return;
  if (entered.action === "collect") wiring.collect(id, entered.name);
  else answer(entered.name, !classNames().includes(entered.name));
}

export async function otherClass() {
  if (loadedCard() === null) return;
  const { id } = state.card;
  const name = await chooseClass(`Which class is ${id}?`, likeliestFirst());
  if (name !== null && loadedCard()?.id === id) answer(name);
}

/** All classes: the likeliest ones of the node that is shown, then the others by name. */
function likeliestFirst() {
  const names = allNames();
  const likeliest = state.card.classes.map((each) => each.name).filter((name) => names.includes(name));
  return [...likeliest, ...names.filter((name) => !likeliest.includes(name)).sort((one, other) => one.localeCompare(other))];
}
