/** "Label next": nodes without a label, one after the other, until every node has one; second looks among them. */

import { ServiceError } from "./api.js";
import { claim } from "./leases.js";
import { pendingLabel } from "./decisions.js";
import { button, byId, element, fill, nodeButton, sentence } from "./dom.js";
import { issueText, keepLabel, otherNames, SETTLED } from "./label_issues.js";
import { readQueue } from "./queue_source.js";
import { prepare } from "./ready.js";
import { reasonOf } from "./reason.js";
import { loadSecondLooks, nextSecondLook } from "./second_looks.js";
import { on, loadedCard, state } from "./state.js";
import { say } from "./status.js";

const AT_ONCE = 20; // nodes to keep ready
const FEW = 3; // with fewer nodes left, more are read
const LEASED = 3; // nodes to lease: the current one and the next ones
const LOOK = "Second look";
const WAIT = 10_000; // milliseconds until nodes that others had leased are requested again
const AHEAD = 4; // upcoming nodes that are listed
const PATIENCE = [700, 1000, 1500, 2000, 3000]; // milliseconds between requests while the order is computed

// {id, classes, unknown}; the first is the current one. returned: its label was undone; issue: its label needs a second
// look. Entries with one of these have no classes.
let waiting = [];
const skipped = new Set(); // ids
let taken = new Set(); // ids that someone else is labelling
let unlabelled = null; // how many nodes have no label
let left = { skipped: 0, pending: 0, taken: 0 }; // of these, when the end of the queue was read
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
    loadQueue();
  });
  byId("queue-skipped").addEventListener("click", showSkipped);
  setInterval(() => {
    if (taken.size > 0 && waiting.length === 0 && !document.hidden) askAgain();
  }, WAIT);
  return loadQueue();
}

function mayHaveLabel(turn) {
  return turn.returned || turn.issue;
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
  loadSecondLooks().then(lookAtEnd);
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
  const others = nodes.filter((each) => isWanted(each.id) && (!stays || each.id !== turn.id));
  const looks = waiting.filter((each) => each.issue && each.id !== state.wanted && isWanted(each.id));
  waiting = [...(stays ? [turn] : []), ...looks, ...others];
  if (waiting.length === 0) mixIn();
  unlabelled = count;
  const skips = refused.filter((id) => skipped.has(id)).length;
  const leased = refused.filter((id) => taken.has(id)).length;
  left = { skipped: skips, taken: leased, pending: refused.length - skips - leased };
  await lease();
  if (stoppedAt === state.wanted && waiting.length > 0) showFirst();
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
    waiting = waiting.filter((each) => each.id !== shown);
  }
  mixIn();
  if (waiting.length > 0) showFirst();
  else stoppedAt = shown;
  if (waiting.length < FEW) loadQueue();
  else lease().then(draw);
  draw();
}

/** Inserts a second look, if one is due, after the next node, which is already loaded. */
function mixIn() {
  const isFree = (id) => isWanted(id) && id !== state.wanted;
  const issue = nextSecondLook(isFree, waiting.length === 0);
  if (issue !== null) waiting.splice(1, 0, { id: issue.id, issue });
}

/** At the end of the queue, goes on with a second look. */
function lookAtEnd() {
  if (!isAtEnd()) return;
  mixIn();
  if (waiting.length > 0 && stoppedAt === state.wanted) showFirst();
  draw();
}

/** The second look at the current node, or null; null also if its label has changed since. */
function issueInTurn(id) {
  const issue = waiting[0]?.id === id && loadedCard() !== null ? waiting[0].issue : undefined;
  return issue !== undefined && issue.class === state.card.label ? issue : null;
}

/** The user gave the current node the class that it has already. */
export function confirmLabel(id, name) {
  const issue = issueInTurn(id);
  if (issue === null) say(`${id} is labelled ${name} already.`);
  else keepLabel(issue);
}

/** The classes in question in the second look at a node. */
export function namesInQuestion(id) {
  const issue = issueInTurn(id);
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
  if (issueInTurn(id) !== null) return SETTLED;
  return waiting[0]?.id === id && loadedCard() !== null ? reasonOf(state.card).title : "";
}

function reasonLine(turn) {
  const issue = issueInTurn(turn.id);
  const { title, words } = issue === null ? reasonOf(state.card) : { title: LOOK, words: issueText(issue) };
  return element("p", { class: "why" }, turn.returned && "You took its label back. ", element("strong", {}, `${title}. `), words);
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
      const hint = each.issue ? LOOK : each.returned ? "Label taken back" : reasonOf(each).title;
      return element("li", {}, nodeButton(each.id, show), element("span", { class: "hint" }, hint));
    }),
  );
  byId("queue-later").hidden = later.length === 0;
  byId("queue-skipped").hidden = skipped.size === 0 || waiting.length === 0;
  byId("queue-count").textContent = unlabelled === null ? "" : `${unlabelled.toLocaleString("en")} unlabelled`;
}
