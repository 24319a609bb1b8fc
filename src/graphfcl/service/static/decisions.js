/** Labels that were given on this page: sent in the background, listed, and undone or changed one by one. */

import { carryOut, leavesOpen, lostAnswer, parcelOf, path, read, ServiceError } from "./api.js";
import { inTurn, reload, secondsSince, resolveOpen, tellStale, trackOpen } from "./changes.js";
import { chooseClass } from "./class_choice.js";
import { decisionRow } from "./decision_row.js";
import { asSent, newDecision, noteConflict, relabelled, replacing, summary, unlearned } from "./decision_states.js";
import { byId, element, fill } from "./dom.js";
import { classNames, emit, on } from "./state.js";
import { caution, say, showWork, tellError } from "./status.js";
import { signed } from "./person.js";
import { signature } from "./signature.js";

const SHOWN = 10;

let decisions = []; // see newDecision()
let count = 0;
const decided = new Set(); // ids of nodes that were labelled here; the card may still show their previous label
let wiring = { show: () => undefined, putBack: () => undefined };

export function startDecisions(parts) {
  wiring = parts;
  trackOpen({ isOpen, resolve: resolveLabels });
  on("version", ({ forget } = {}) => {
    if (forget) decisions = [];
    draw();
  });
  draw();
}

/** Labels nodes. The labels wait while the model learns earlier ones, and are then sent together. */
export function teach(labels) {
  for (const label of labels) decide(label);
  draw();
  return inTurn(async () => {
    await signed();
    await sendWaiting();
  });
}

/** Stores a decision. It replaces one about the same node that was not sent yet or was refused. */
function decide(label) {
  const [unsent] = decisions.filter((each) => each.id === label.id && unlearned(each));
  decisions = decisions.filter((each) => each !== unsent);
  count += 1;
  const made = newDecision(label, count, decided.has(label.id));
  if (unsent?.again) Object.assign(made, { before: unsent.before, again: true });
  decisions.push(made);
  emit("decision");
  decided.add(label.id);
}

/** Whether no later decision is about the same node. Only the newest one can be changed or undone. */
function isNewest(decision) {
  return !decisions.some((each) => each.id === decision.id && each.number > decision.number);
}

/** Classes that were named here and that the service may not have learned yet. */
export function pendingNames() {
  const open = decisions.filter((each) => each.state === "waiting" || each.state === "sending");
  return [...new Set(open.map((each) => each.name))].filter((name) => !classNames().includes(name));
}

/** Names of classes in the order in which they were first used here. */
export function usedNames() {
  return [...new Set(decisions.filter((each) => each.state !== "failed").map((each) => each.name))];
}

/** The label that a node was given here and that the service has not learned yet, or null. */
export function pendingLabel(id) {
  const pending = decisions.findLast((each) => each.id === id && ["waiting", "sending"].includes(each.state));
  return pending ? pending.name : null;
}

async function sendWaiting() {
  await resolveAll();
  for (;;) {
    await lookBefore(decisions.filter((each) => each.state === "waiting" && each.look && !each.again));
    const waiting = decisions.filter((each) => each.state === "waiting");
    if (waiting.length === 0) return;
    const [first] = waiting;
    await send(waiting.filter((each) => replacing(each) === replacing(first) && each.fresh === first.fresh));
  }
}

/** Reads the current labels of nodes that were labelled here before, to replace them and to restore them on undo. */
async function lookBefore(waiting) {
  for (const each of waiting) {
    try {
      each.before = (await read(path("nodes", each.id))).label;
      each.look = false;
      if (each.before !== each.name) continue;
      decisions = decisions.filter((other) => other !== each);
      say(`${each.id} is labelled ${each.name} already.`);
      draw();
    } catch (error) {
      fail([each], error);
    }
  }
}

/** Finds out whether a change without an answer was made; its decisions are then learned or failed. */
async function resolve(parcel) {
  const made = (await lostAnswer(parcel)) !== null;
  const open = parcel.batch.filter((each) => each.parcel === parcel);
  for (const each of open) each.parcel = null;
  if (made) mark(open, "learned");
  return made;
}

function isOpen() {
  return decisions.some((each) => each.parcel !== null || each.back !== null);
}

/** Finds out whether the service made any of the labels and undos that got no answer. */
async function resolveLabels() {
  let made = false;
  const parcels = new Set(decisions.map((each) => each.parcel).filter((parcel) => parcel !== null));
  for (const parcel of parcels) made = (await resolve(parcel)) || made;
  for (const each of decisions.filter((other) => other.back !== null)) {
    const gone = (await lostAnswer(each.back)) !== null;
    each.back = null;
    if (gone) decisions = decisions.filter((other) => other !== each);
    made ||= gone;
  }
  draw();
  return made;
}

/** Resolves open decisions as far as the service answers; the others stay open and are tried again later. */
async function resolveAll() {
  try {
    await resolveOpen();
  } catch (error) {
    tellError(error);
  }
}

async function send(batch, secondTry = false) {
  mark(batch, "sending");
  const body = { labels: asSent(batch), by: signature() };
  if (replacing(batch[0])) body.on_conflict = "replace";
  // The user has confirmed a name that belonged to a former class or looks like another one.
  if (batch[0].fresh) Object.assign(body, { again: true, new_classes: [...new Set(batch.map((each) => each.name))] });
  const begun = performance.now();
  const parcel = { ...parcelOf("POST", path("labels"), body), batch };
  try {
    const answer = await carryOut(parcel);
    mark(batch, "learned");
    if (answer.warning) caution(answer.warning);
    else say(`The model learned in ${secondsSince(begun)}: ${summary(batch)}.`);
  } catch (error) {
    if (error.status === 412 && !secondTry) await sendAgain(batch);
    else if (batch.length > 1 && error.status >= 400 && error.status < 500) for (const each of batch) await send([each]);
    else if (error.status === 409 && (await noteConflict(batch[0]))) tellConflict(batch[0]);
    else fail(batch, error, leavesOpen(error) ? parcel : null);
  }
}

function tellConflict({ id, trouble }) {
  caution(`${id}: ${trouble}. Keep or replace it in your last decisions.`);
  draw();
}

/** A label that someone else gave stays. */
function keepTheirs(decision) {
  decisions = decisions.filter((each) => each !== decision);
  say(`${decision.id} stays ${decision.conflict}.`);
  draw();
}

/** After a change from elsewhere, labels of classes that are still there are sent again. */
async function sendAgain(batch) {
  const before = new Set(classNames());
  try {
    await reload();
  } catch (error) {
    fail(batch, error);
    return;
  }
  const gone = batch.filter((each) => before.has(each.name) && !classNames().includes(each.name));
  for (const each of gone) Object.assign(each, { state: "failed", trouble: `the class “${each.name}” is gone` });
  const others = batch.filter((each) => !gone.includes(each));
  const unseen = await relabelled(others);
  const same = others.filter((each) => !unseen.includes(each));
  if (same.length > 0) await send(same, true);
  for (const each of unseen) tellConflict(each);
  if (gone.length > 0) caution("Someone else changed the model: a class that you used is gone. See your last decisions.");
  draw();
}

function fail(batch, error, parcel = null) {
  for (const each of batch) Object.assign(each, { state: "failed", trouble: error.message, parcel });
  draw();
  tellError(error);
}

function mark(batch, to) {
  for (const each of batch) Object.assign(each, { state: to, trouble: "" });
  draw();
}

/** Undoes the last decision. */
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
  if (unlearned(decision) && !decision.again) return sayAsBefore(decision);
  return inTurn(() => takeBack(decision));
}

async function sayAsBefore({ id }) {
  say(`${id} has its label back as it was.`);
}

/** Undoes a label that was sent: the node gets its previous label back. The service retires a class without labels. */
async function takeBack(decision) {
  const begun = performance.now();
  const { id, name } = decision;
  try {
    if (decision.parcel !== null) await resolve(decision.parcel);
    await resolveOpen();
    if (decision.state !== "learned" && !decision.again) {
      sayAsBefore(decision);
      return;
    }
    if (!isNewest(decision)) throw new ServiceError(409, `${id} has a later label. Undo that one first.`);
    await sendBack(decision);
    say(`Taken back in ${secondsSince(begun)}: ${id} is not labelled ${name}.`);
  } catch (error) {
    decisions = [...decisions, decision].sort((one, other) => one.number - other.number);
    draw();
    if (error.status === 412) await tellStale("The label is still there: take it back again if you still want to.");
    else tellError(error);
  }
}

async function sendBack(decision) {
  const { id, before } = decision;
  if (decision.back !== null && (await lostAnswer(decision.back)) !== null) return;
  decision.back = null;
  const parcel =
    before === null
      ? parcelOf("DELETE", path("labels"), { ids: [id] })
      : parcelOf("POST", path("labels"), { labels: [{ id, class: before, reason: "taken back" }], by: signature(), on_conflict: "replace" });
  try {
    await carryOut(parcel);
  } catch (error) {
    if (leavesOpen(error)) decision.back = parcel;
    throw error;
  }
}

/** Updates the class names of decisions after a class was renamed or merged. */
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
  await inTurn(async () => {
    await resolveAll();
    if (decision.parcel !== null || !decisions.includes(decision) || !isNewest(decision)) return;
    const again = decision.again || decision.state === "learned";
    Object.assign(decision, { name, again, fresh: false, state: "waiting", trouble: "", back: null });
    await sendWaiting();
  });
}

/** Sends a label again, unless the service learned it and only its answer was lost. */
function tryAgain(decision) {
  return inTurn(async () => {
    await resolveAll();
    if (decision.parcel !== null || !decisions.includes(decision)) return;
    if (decision.state === "learned") say(`The model has learned it: ${summary([decision])}.`);
    else mark([decision], "waiting");
    await sendWaiting();
  });
}

function draw() {
  const acts = { show: wiring.show, tryAgain, keepTheirs, change: changeDecision, undo };
  const rows = decisions.slice(-SHOWN).reverse().map((each) => decisionRow(each, isNewest(each), acts));
  fill(byId("decisions"), rows.length > 0 ? rows : element("li", { class: "hint" }, "You have labelled nothing yet."));
  showWork(decisions.filter((each) => each.state === "waiting" || each.state === "sending").length);
}
