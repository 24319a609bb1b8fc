/** "Label next": nodes without a label, one after the other, until every node has one; second looks among them. */

import { ServiceError } from "./api.js";
import { claim } from "./leases.js";
import { pendingLabel } from "./decisions.js";
import { button, byId, element, fill, nodeButton, sentence } from "./dom.js";
import { issueText, keepLabel, otherNames, SETTLED } from "./label_issues.js";
import { readQueue } from "./queue_source.js";
import { prepare } from "./ready.js";
import { reasonOf } from "./reason.js";
import { forgetKept, issueOf, loadSecondLooks, nextSecondLooks, noteAsked, noteKept } from "./second_looks.js";
import { on, loadedCard, state } from "./state.js";
import { say } from "./status.js";

const AT_ONCE = 20; // nodes to keep ready
const FEW = 3; // with fewer nodes left, more are read
const LEASED = 3; // nodes to lease: the current one and the next ones
const LOOK = "Second look";
const WAIT = 10_000; // milliseconds until nodes that others had leased are requested again
const AHEAD = 4; // upcoming nodes that are listed
const PATIENCE = [700, 1000, 1500, 2000, 3000]; // milliseconds between requests while the order is computed

// {id, classes, unknown}; the first is the current one. returned: its label was undone; look: its label needs a second
// look. Entries with one of these have no classes.
let waiting = [];
const skipped = new Set(); // ids
let taken = new Set(); // ids that someone else is labelling
let unlabelled = null; // how many nodes have no label
let left = { skipped: 0, pending: 0, taken: 0 }; // of these, when the end of the queue was read
let kept = null; // id of the label that was kept in a second look, if that was the last answer
let stoppedAt = null; // the node that was shown when the queue became empty: the next node is shown when it arrives
let show = () => undefined;
let trouble = "";
let reading = false;
let again = false;

export function startQueue(showNode) {
  show = showNode;
  on("card", () => {
    if (waiting[0]?.id === state.card.id && isLabelled() && !mayHaveLabel(waiting[0])) waiting.shift();
    draw();
  });
  on("version", ({ forget } = {}) => {
    if (forget) skipped.clear();
    loadSecondLooks(takeLooks);
    loadQueue();
  });
  on("decision", () => (kept = null));
  byId("queue-skipped").addEventListener("click", showSkipped);
  setInterval(() => {
    if (taken.size > 0 && waiting.length === 0 && !document.hidden) askAgain();
  }, WAIT);
  loadSecondLooks(takeLooks);
  return loadQueue();
}

function mayHaveLabel(turn) {
  return turn.returned || (turn.look && issueOf(turn.id) !== null);
}

/** Whether the node that is shown has a label. */
function isLabelled() {
  return state.card !== null && state.card.id === state.wanted && state.card.label !== null;
}

function isWanted(id) {
  return !skipped.has(id) && !taken.has(id) && pendingLabel(id) === null;
}

/** Reads the head of the queue, again while the order of this version is computed. The current node stays. */
async function loadQueue() {
  again = true;
  if (reading) return;
  reading = true;
  trouble = "";
  try {
    for (let tried = 0; again; tried += 1) {
      again = false;
      draw();
      const batch = await readQueue(AT_ONCE, isWanted, skipped.size + taken.size + AT_ONCE);
      await take(batch);
      if (waiting.length === 0 && batch.nodes.length > 0) again = true; // others are labelling all of these
      if (batch.ready) continue;
      await new Promise((resolve) => setTimeout(resolve, PATIENCE[Math.min(tried, PATIENCE.length - 1)]));
      again = true;
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    trouble = error.message;
  } finally {
    reading = false;
    draw();
  }
}

async function take({ nodes, refused, unlabelled: count }) {
  const [turn] = waiting;
  const stays = turn !== undefined && turn.id === state.wanted && (mayHaveLabel(turn) || !isLabelled());
  const looks = waiting.filter((each) => each.look && each.id !== state.wanted && isWanted(each.id));
  const first = [...(stays ? [turn] : []), ...looks];
  waiting = [...first, ...nodes.filter((each) => isWanted(each.id) && !first.some((other) => other.id === each.id))];
  unlabelled = count;
  const skips = refused.filter((id) => skipped.has(id)).length;
  const leased = refused.filter((id) => taken.has(id)).length;
  left = { skipped: skips, taken: leased, pending: refused.length - skips - leased };
  await lease();
  if (waiting.length === 0) await offerLooks();
  else if (stoppedAt === state.wanted) showFirst();
}

/** Leases the next nodes. Those that someone else has leased leave the queue until they are free again. */
async function lease() {
  for (let free = false; !free && waiting.length > 0; ) {
    const lost = await claim(waiting.slice(0, LEASED).map((each) => each.id));
    const gone = lost.filter((id) => id !== state.wanted || stoppedAt === state.wanted);
    free = gone.length === 0;
    for (const id of gone) taken.add(id);
    waiting = waiting.filter((each) => !gone.includes(each.id));
  }
  const next = waiting.filter((each) => each.id !== state.wanted);
  // Without a current node, the first of them is shown now, and the second one is next.
  for (const each of next.slice(0, stoppedAt === state.wanted ? 2 : 1)) prepare(each.id);
}

function showFirst() {
  stoppedAt = undefined;
  show(waiting[0].id);
}

/** Skips the node, unless its card is still loading. */
export function skip() {
  if (loadedCard() !== null) goOn();
}

/** Shows the next node of the queue; after a searched node, the current one of the queue. */
export function goOn() {
  const shown = state.wanted;
  if (shown !== null) {
    if (!isLabelled() && pendingLabel(shown) === null) skipped.add(shown);
    noteAsked(shown);
    waiting = waiting.filter((each) => each.id !== shown);
  }
  if (waiting.length > 0) {
    // A second look that is due comes after the next node, which is already loaded.
    for (const id of nextSecondLooks(1, isFreeLook, false)) waiting.splice(1, 0, { id, look: true });
    showFirst();
  } else {
    stoppedAt = shown;
    offerLooks();
  }
  if (waiting.length < FEW) loadQueue();
  else lease().then(draw);
  draw();
}

function isFreeLook(id) {
  return isWanted(id) && id !== state.wanted && !waiting.some((each) => each.id === id);
}

/** At the end of the queue, goes on with second looks. They are leased first: others may be offered the same ones. */
async function offerLooks() {
  while (waiting.length === 0 && stoppedAt === state.wanted) {
    const ids = nextSecondLooks(LEASED, isFreeLook, true);
    if (ids.length === 0) break;
    waiting = ids.map((id) => ({ id, look: true }));
    await lease();
    if (waiting.length > 0 && stoppedAt === state.wanted) showFirst();
  }
  draw();
}

/** Labels that need a second look were read: those that do not any more leave the queue. */
function takeLooks() {
  waiting = waiting.filter((each) => !each.look || each.id === state.wanted || issueOf(each.id) !== null);
  if (isAtEnd()) offerLooks();
  else draw();
}

/** Why the label of the node that is shown needs a second look, or null; null also if the label has changed since. */
function secondLook(id) {
  if (loadedCard()?.id !== id || pendingLabel(id) !== null) return null;
  const issue = issueOf(id, waiting.some((each) => each.id === id && each.returned));
  return issue?.class === state.card.label ? issue : null;
}

/** The user gave the node that is shown the class that it has already. */
export async function confirmLabel(id, name) {
  const issue = secondLook(id);
  if (issue === null) {
    say(`${id} is labelled ${name} already.`);
    return;
  }
  kept = id;
  noteKept(id);
  if ((await keepLabel(issue)) !== null) return;
  forgetKept(id);
  loadSecondLooks(takeLooks);
}

/** If the last answer kept a label, shows its node again: that answer changed nothing that could be undone. */
export function returnToKept() {
  if (kept === null) return false;
  say(`The label of ${kept} was kept: choose another class to change it.`);
  putBack(kept);
  kept = null;
  return true;
}

/** The classes in question in the second look at a node. */
export function namesInQuestion(id) {
  const issue = secondLook(id);
  return issue === null ? [] : [issue.class, ...otherNames(issue)];
}

export function backToQueue() {
  if (waiting.length > 0) showFirst();
  else if (isAtEnd()) showSkipped();
  else loadQueue();
}

/** Reads the queue again with nodes that others had leased, since their leases may have ended. */
function askAgain() {
  taken = new Set();
  loadQueue();
}

/** Whether the whole queue was read and is empty. */
function isAtEnd() {
  return waiting.length === 0 && unlabelled !== null && !reading && trouble === "";
}

function showSkipped() {
  skipped.clear();
  loadQueue();
}

/** Makes the node of an undone decision the current one. */
export function putBack(id) {
  skipped.delete(id);
  waiting = [{ id, returned: true }, ...waiting.filter((each) => each.id !== id)];
  showFirst();
}

/** Why a node was suggested, in a word or two; "" if it is not the current node of the queue. */
export function reasonAsked(id) {
  if (secondLook(id) !== null) return SETTLED;
  return waiting[0]?.id === id && loadedCard() !== null ? reasonOf(state.card).title : "";
}

function reasonLine(turn) {
  const issue = secondLook(turn.id);
  const { title, words } = issue === null ? reasonOf(state.card) : { title: LOOK, words: issueText(issue) };
  return element("p", { class: "why" }, turn.returned && issue === null && "You took its label back. ", element("strong", {}, `${title}. `), words);
}

function ending() {
  if (trouble) return [sentence(trouble), button("Try again", loadQueue)];
  if (!isAtEnd()) return sentence("The next nodes are being computed …");
  if (left.taken > 0) {
    const words = left.taken === 1 ? "The last node is being labelled by someone else." : `The last ${left.taken} nodes are being labelled by others.`;
    return [sentence(`${words} The page asks again by itself.`), button("Ask now", askAgain)];
  }
  if (left.skipped > 0) {
    const again = button([element("kbd", {}, "g"), " ", element("span", {}, "Show them again")], showSkipped);
    const words = left.skipped === 1 ? "You skipped the only node without a label." : `You skipped all ${left.skipped} nodes without a label.`;
    return [sentence(words), again];
  }
  return sentence(left.pending > 0 ? "Every node has a label. The last ones are being learned." : "Every node has a label.");
}

function draw() {
  const [turn, ...later] = waiting;
  const shown = state.card?.id;
  fill(
    byId("queue-reason"),
    turn && turn.id === shown && reasonLine(turn),
    turn && shown !== undefined && turn.id !== shown && button("Back to the queue", backToQueue),
    !turn && ending(),
  );
  fill(
    byId("queue-next"),
    later.slice(0, AHEAD).map((each) => {
      const hint = each.look ? LOOK : each.returned ? "Label taken back" : reasonOf(each).title;
      return element("li", {}, nodeButton(each.id, show), element("span", { class: "hint" }, hint));
    }),
  );
  byId("queue-later").hidden = later.length === 0;
  byId("queue-skipped").hidden = skipped.size === 0 || waiting.length === 0;
  byId("queue-count").textContent = unlabelled === null ? "" : `${unlabelled.toLocaleString("en")} unlabelled`;
}
