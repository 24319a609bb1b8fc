/** The question "which class is it?" about the node that is shown, with the classes and their keys. */

import { button, byId, element, fill } from "./dom.js";
import { chooseClass } from "./class_choice.js";
import { classOfKey, givenKeys, giveKeys, KEYS } from "./class_keys.js";
import { pendingLabel, pendingNames, teach, usedNames } from "./decisions.js";
import { askName, meansNew } from "./dialogs.js";
import { noteOf, takeNote, writeNote } from "./notes.js";
import { startRoving } from "./roving.js";
import { classNames, on, loadedCard, state } from "./state.js";
import { say } from "./status.js";

const BRIEF = 12; // features that are shown for a node without a text
const LIKELY = 0.01; // probability from which a class without a key has a button

let wiring = { goOn: () => undefined, skip: () => undefined, collect: () => undefined, reason: () => "", confirm: () => undefined, named: () => [] };

export function startLabelling(parts) {
  wiring = parts;
  on("card", draw);
  on("classes", draw);
  startRoving(byId("labelling"));
}

function allNames() {
  return [...classNames(), ...pendingNames()];
}

/** Draws the question again; the focus stays on its button, or goes to the question. */
function draw() {
  const held = byId("labelling").contains(document.activeElement) ? document.activeElement.textContent : null;
  drawQuestion();
  if (held === null) return;
  const same = [...byId("labelling").querySelectorAll("button")].find((each) => each.textContent === held);
  (same ?? byId("question"))?.focus({ preventScroll: true });
}

function drawQuestion() {
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
  const likeliest = card.classes.filter((each) => each.probability >= LIKELY).map((each) => each.name);
  const likely = [...new Set([...wiring.named(card.id), ...likeliest])];
  const withoutKey = likely.filter((name) => names.includes(name) && !withKey.includes(name));
  const more = names.length > withKey.length;
  fill(
    place,
    element("h3", { id: "question", tabindex: -1 }, "Which class is ", element("span", { class: "id" }, card.id), "?"),
    brief(card),
    label !== null && element("p", { class: "hint" }, "It is labelled ", element("strong", {}, label), "."),
    noteOf(card.id) && element("p", { class: "hint" }, `Your note: “${noteOf(card.id)}”`),
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
      keyed("m", "Note", writeNote),
    ]),
  );
}

/** What the node is, in short: on a phone its card is below the keys. */
function brief(card) {
  const words = card.text || card.features.slice(0, BRIEF).map((each) => each.name).join(", ");
  return words && element("p", { class: "brief" }, words);
}

function classButton(name, key, label, guess) {
  const content = [key !== null && [element("kbd", {}, key), " "], element("span", { title: name }, name)];
  if (name === guess) content.push(element("span", { class: "unseen" }, ", likeliest"));
  return element(
    "li",
    {},
    button(content, () => answer(name), {
      class: "class-key",
      "aria-pressed": label === null ? null : String(label === name),
      "data-guess": name === guess,
      "aria-keyshortcuts": key,
    }),
  );
}

function keyed(key, text, press) {
  return button([element("kbd", {}, key), " ", element("span", {}, text)], press);
}

/** Labels the current node with the class of a digit. */
export function answerByKey(digit) {
  const name = classOfKey(digit);
  if (loadedCard() === null) return;
  if (name === null) say(`Key ${digit} stands for no class. Nothing was labelled.`);
  else if (allNames().includes(name)) answer(name);
  else say(`Key ${digit} stands for “${name}”, which is gone. Nothing was labelled.`);
}

/** Labels the current node and goes on to the next at once. */
function answer(name, fresh = false) {
  if (loadedCard() === null) return;
  const { id, label } = state.card;
  const held = byId("labelling").contains(document.activeElement);
  if ((pendingLabel(id) ?? label) === name) wiring.confirm(id, name);
  else {
    const kept = { reason: wiring.reason(id), note: takeNote(id) };
    teach([{ id, name, before: label, fresh: fresh || pendingNames().includes(name), ...kept }]);
  }
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
