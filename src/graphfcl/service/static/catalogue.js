/** The list of classes: labels, recall before and after the last change, which gains most from labels, and actions. */

import { othersChanges, path, read } from "./api.js";
import { change } from "./changes.js";
import { chooseClass } from "./class_choice.js";
import { renameKey } from "./class_keys.js";
import { followName } from "./decisions.js";
import { askName, confirmed } from "./dialogs.js";
import { recallText } from "./effect.js";
import { asSentence, button, byId, counted, element, fill, percent } from "./dom.js";
import { openClass } from "./members.js";
import { classNames, emit, state } from "./state.js";

const LOSS = 0.05; // loss of recall at the last change from which on it is coloured
let open = null; // name of the class whose actions are shown

export function startCatalogue() {
  byId("catalogue-filter").addEventListener("input", draw);
}

export async function loadCatalogue() {
  const { classes, say } = await read("/v1/classes");
  state.classes = classes.sort((one, other) => one.name.localeCompare(other.name, undefined, { numeric: true }));
  byId("catalogue-gain").textContent = say;
  draw();
  emit("classes");
}

function draw() {
  const letters = byId("catalogue-filter").value.trim().toLowerCase();
  const shown = state.classes.filter((each) => each.name.toLowerCase().includes(letters));
  byId("catalogue-count").textContent = counted(state.classes.length, "class", "classes");
  fill(byId("catalogue"), shown.map(row), shown.length === 0 && element("li", { class: "hint" }, "No class has these letters."));
}

function row(entry) {
  const details = element(
    "details",
    { name: "class", open: open === entry.name },
    element(
      "summary",
      {},
      element("span", { class: "class-name" }, entry.name),
      element("span", { class: "hint" }, counted(entry.labels, "label")),
      recall(entry),
    ),
    entry.warning && element("p", { class: "warning" }, asSentence(entry.warning)),
    entry.measured && element("p", { class: "hint" }, `Recognised: ${recallText(entry.measured)}, with the 95 % interval.`),
    element("p", { class: "hint" }, learnedWhen(entry)),
    element("div", { class: "actions" }, [
      button("Members and labels", () => openClass(entry.name)),
      button("Rename", () => rename(entry.name)),
      button("Merge", () => merge(entry.name)),
      button("Retire", () => retire(entry)),
    ]),
  );
  details.addEventListener("toggle", () => {
    if (details.open) open = entry.name;
    else if (open === entry.name) open = null;
  });
  return element("li", { "data-warning": Boolean(entry.warning) }, details);
}

/** Recall of the class after the last change, and before it if that differs. */
function recall({ recall: after, recall_before: before, measured }) {
  if (after === null || after === undefined) return element("span", { class: "recall hint" }, "not measured");
  const differs = before !== null && before !== undefined && Math.round(100 * before) !== Math.round(100 * after);
  const kind = differs ? (after < before - LOSS ? "worse" : after > before ? "better" : "same") : "same";
  const figures = measured ? recallText(measured) : percent(after);
  const spoken = differs ? `recall ${percent(before)} before the last change, ${figures} after` : `recall ${figures}`;
  return element(
    "span",
    { class: "recall", "data-kind": kind },
    element("span", { class: "unseen" }, spoken),
    element("span", { "aria-hidden": "true", title: figures }, differs && `${percent(before)} → `, measured ? `${measured.right} of ${measured.of}` : percent(after)),
  );
}

function learnedWhen({ session }) {
  if (session === null || session === undefined) return "";
  return Number(session) === 0 ? "Known since the model was fitted." : `Learned later, in session ${session}.`;
}

async function rename(name) {
  const seen = othersChanges();
  const entered = await askName(`Rename “${name}”`, { label: "Its new name", value: name, choices: [["take", "Rename"]] });
  if (entered === null || entered.name === name) return;
  const message = () => `“${name}” is called “${entered.name}”.`;
  const after = () => {
    renameKey(name, entered.name);
    followName(name, entered.name);
  };
  await change("PATCH", path("classes", name), { name: entered.name }, message, { after, seen });
}

async function merge(name) {
  const seen = othersChanges();
  const others = classNames().filter((each) => each !== name);
  const into = await chooseClass(`Merge “${name}” into which class?`, others);
  if (into === null) return;
  const text = `All labels of “${name}” become labels of “${into}”, and “${name}” is gone.`;
  if (!(await confirmed("Merge two classes", text, "Merge"))) return;
  const message = () => `“${name}” is merged into “${into}”.`;
  await change("POST", path("classes", name, "merge"), { into }, message, { after: () => followName(name, into), seen });
}

async function retire({ name, labels }) {
  const seen = othersChanges();
  const text = `“${name}” is never predicted again, and its ${counted(labels, "label")} will be removed. You can go back in Versions.`;
  if (!(await confirmed(`Retire “${name}”?`, text, "Retire"))) return;
  await change("DELETE", path("classes", name), undefined, () => `“${name}” is retired.`, { seen });
}
