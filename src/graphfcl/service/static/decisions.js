/** Labels that were given on this page: sent in the background, shown as a list, taken back or changed one by one. */

import { path, write } from "./api.js";
import { inTurn, reload, secondsSince, tellStale } from "./changes.js";
import { chooseClass } from "./dialogs.js";
import { button, byId, element, fill, nodeButton } from "./dom.js";
import { classNames, on } from "./state.js";
import { caution, say, showWork, tellError } from "./status.js";
import { signature } from "./token.js";

const SHOWN = 10;
const STATES = { waiting: "waiting", sending: "is being learned", learned: "learned", failed: "not learned" };

// {id, name, fresh: the user typed the name of a new class, before: label that the node had, or null,
//  again: it was learned otherwise before, state, trouble}
let decisions = [];
let wiring = { show: () => undefined, putBack: () => undefined };

export function startDecisions(parts) {
  wiring = parts;
  on("version", ({ forget } = {}) => {
    if (forget) decisions = [];
    draw();
  });
  draw();
}

/** Gives nodes a class. The labels wait while the model learns those before, and are then sent together. */
export function teach(labels) {
  for (const label of labels) decisions.push({ fresh: false, before: null, again: false, ...label, state: "waiting", trouble: "" });
  draw();
  return inTurn(sendWaiting);
}

/** Classes that were named here and that the service may not have learned yet. */
export function pendingNames() {
  const open = decisions.filter((each) => each.state === "waiting" || each.state === "sending");
  return [...new Set(open.map((each) => each.name))].filter((name) => !classNames().includes(name));
}

/** Names of classes in the order in which they were last used here, the latest first. */
export function usedNames() {
  return [...new Set(decisions.filter((each) => each.state !== "failed").map((each) => each.name).reverse())];
}

/** The label that a node was given here and that the service has not learned yet, or null. */
export function pendingLabel(id) {
  const found = decisions.findLast((each) => each.id === id && ["waiting", "sending"].includes(each.state));
  return found ? found.name : null;
}

async function sendWaiting() {
  for (;;) {
    const waiting = decisions.filter((each) => each.state === "waiting");
    if (waiting.length === 0) return;
    const [first] = waiting;
    await send(waiting.filter((each) => replacing(each) === replacing(first) && each.fresh === first.fresh));
  }
}

function replacing(decision) {
  return decision.before !== null || decision.again;
}

async function send(batch, secondTry = false) {
  mark(batch, "sending");
  const labels = batch.map((each) => ({ id: each.id, class: each.name }));
  const body = { labels, by: signature() };
  if (replacing(batch[0])) body.on_conflict = "replace";
  if (batch[0].fresh) body.again = true; // it may be called as a class was that is gone
  const begun = performance.now();
  try {
    const answer = await write("POST", path("labels"), body);
    mark(batch, "learned");
    if (answer.warning) caution(answer.warning);
    else say(`The model learned in ${secondsSince(begun)}: ${summary(batch)}.`);
  } catch (error) {
    if (error.status === 412 && !secondTry) await sendAgain(batch);
    else if (batch.length > 1 && error.status >= 400 && error.status < 500) for (const each of batch) await send([each]);
    else fail(batch, error);
  }
}

/** After a change from elsewhere, labels of classes that are still there are sent again. */
async function sendAgain(batch) {
  const known = new Set(classNames());
  await reload();
  const gone = batch.filter((each) => known.has(each.name) && !classNames().includes(each.name));
  for (const each of gone) Object.assign(each, { state: "failed", trouble: `the class “${each.name}” is gone` });
  const others = batch.filter((each) => !gone.includes(each));
  if (others.length > 0) await send(others, true);
  if (gone.length > 0) caution("Someone else changed the model: a class that you used is gone. See your last decisions.");
  draw();
}

function fail(batch, error) {
  for (const each of batch) Object.assign(each, { state: "failed", trouble: error.message });
  draw();
  tellError(error);
}

function summary(batch) {
  const [first] = batch;
  return batch.length === 1 ? `${first.id} is ${first.name}` : `${batch.length} labels`;
}

function mark(batch, to) {
  for (const each of batch) each.state = to;
  draw();
}

/** Takes the last decision back. */
export function undoLast() {
  const last = decisions.at(-1);
  if (last) return undo(last);
  say("There is nothing to take back.");
  return Promise.resolve();
}

function undo(decision) {
  decisions = decisions.filter((each) => each !== decision);
  draw();
  wiring.putBack(decision.id);
  if (decision.state === "waiting" || decision.state === "failed") {
    say(`${decision.id} has its label back as it was.`);
    return Promise.resolve();
  }
  return inTurn(() => takeBack(decision));
}

/** A label that was sent: the node gets back what it had. The service retires a class that has no label left. */
async function takeBack(decision) {
  if (decision.state !== "learned") return;
  const begun = performance.now();
  const { id, name, before } = decision;
  try {
    if (before !== null) await write("POST", path("labels"), { labels: [{ id, class: before }], on_conflict: "replace" });
    else await write("DELETE", path("labels"), { ids: [id] });
    say(`Taken back in ${secondsSince(begun)}: ${id} is not labelled ${name}.`);
  } catch (error) {
    decisions.push(decision);
    draw();
    if (error.status === 412) await tellStale("The label is still there: take it back again if you still want to.");
    else tellError(error);
  }
}

/** A class was renamed or merged: decisions speak of it by the name that it has. */
export function followName(from, to) {
  for (const each of decisions) {
    if (each.name === from) each.name = to;
    if (each.before === from) each.before = to;
  }
  draw();
}

async function changeDecision(decision) {
  const names = [...classNames(), ...pendingNames()];
  const name = await chooseClass(`Which class is ${decision.id}?`, names);
  if (name === null || name === decision.name) return;
  const again = decision.state === "learned" || decision.state === "sending";
  await inTurn(async () => {
    Object.assign(decision, { name, again, fresh: false, state: "waiting", trouble: "" });
    await sendWaiting();
  });
}

function tryAgain(decision) {
  mark([decision], "waiting");
  decision.trouble = "";
  return inTurn(sendWaiting);
}

function draw() {
  const shown = decisions.slice(-SHOWN).reverse();
  const rows = shown.map((each) =>
    element(
      "li",
      { "data-state": each.state },
      element("span", { class: "decision" }, nodeButton(each.id, wiring.show), " is ", element("strong", {}, each.name)),
      each.state === "learned" && element("span", { class: "hint", "aria-hidden": "true" }, "✓"),
      element("span", { class: each.state === "learned" ? "unseen" : "hint" }, each.trouble || STATES[each.state]),
      element(
        "span",
        { class: "row-actions" },
        each.state === "failed" && button("Try again", () => tryAgain(each)),
        button("Change", () => changeDecision(each), { "aria-label": `Change the label of ${each.id}` }),
        button("Undo", () => undo(each), { "aria-label": `Undo the label of ${each.id}` }),
      ),
    ),
  );
  fill(byId("decisions"), rows.length > 0 ? rows : element("li", { class: "hint" }, "You have labelled nothing yet."));
  showWork(decisions.filter((each) => each.state === "waiting" || each.state === "sending").length);
}
