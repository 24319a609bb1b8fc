/** "Label next": nodes without a label, one after the other, until every node has one. */

import { ServiceError } from "./api.js";
import { pendingLabel } from "./decisions.js";
import { button, byId, element, fill, nodeButton, sentence } from "./dom.js";
import { readQueue } from "./queue_source.js";
import { reasonOf } from "./reason.js";
import { on, loadedCard, state } from "./state.js";

const AT_ONCE = 20; // nodes that are kept ready
const FEW = 3; // nodes left, when more are read
const AHEAD = 4; // nodes shown after the one in turn
const PATIENCE = [700, 1000, 1500, 2000, 3000]; // milliseconds between questions while the order is computed

let waiting = []; // {id, classes, unknown}; the first is in turn. returned: its label was taken back, it has no classes
const skipped = new Set(); // ids
let unlabelled = null; // how many nodes have no label
let left = { skipped: 0, pending: 0 }; // of these, when the end of the queue was read
let stoppedAt = null; // the node that was shown when no other one was waiting: the next one is shown when it comes
let show = () => undefined;
let trouble = "";
let reading = false;
let again = false;

export function startQueue(showNode) {
  show = showNode;
  on("card", () => {
    if (waiting[0]?.id === state.card.id && isLabelled() && !waiting[0].returned) waiting.shift();
    draw();
  });
  on("version", ({ forget } = {}) => {
    if (forget) skipped.clear();
    loadQueue();
  });
  byId("queue-skipped").addEventListener("click", showSkipped);
  return loadQueue();
}

/** Whether the node that is shown has a label. */
function isLabelled() {
  return state.card !== null && state.card.id === state.wanted && state.card.label !== null;
}

function isWanted(id) {
  return !skipped.has(id) && pendingLabel(id) === null;
}

/** Reads the head of the queue, again while the order of this version is computed. The node in turn stays. */
async function loadQueue() {
  again = true;
  if (reading) return;
  reading = true;
  trouble = "";
  try {
    for (let tried = 0; again; tried += 1) {
      again = false;
      draw();
      const batch = await readQueue(AT_ONCE, isWanted, skipped.size + AT_ONCE);
      take(batch);
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

function take({ nodes, refused, unlabelled: count }) {
  const [turn] = waiting;
  const stays = turn !== undefined && turn.id === state.wanted && (turn.returned || !isLabelled());
  const others = nodes.filter((each) => isWanted(each.id) && (!stays || each.id !== turn.id));
  waiting = stays ? [turn, ...others] : others;
  unlabelled = count;
  const skips = refused.filter((id) => skipped.has(id)).length;
  left = { skipped: skips, pending: refused.length - skips };
  if (stoppedAt === state.wanted && waiting.length > 0) showFirst();
}

function showFirst() {
  stoppedAt = undefined;
  show(waiting[0].id);
}

/** Goes on without an answer, unless the node is not shown yet. */
export function skip() {
  if (loadedCard() !== null) goOn();
}

/** Shows the next node; a node that was found by a search leads back to the one in turn. */
export function goOn() {
  const shown = state.wanted;
  if (shown !== null) {
    if (!isLabelled() && pendingLabel(shown) === null) skipped.add(shown);
    waiting = waiting.filter((each) => each.id !== shown);
  }
  if (waiting.length > 0) showFirst();
  else stoppedAt = shown;
  if (waiting.length < FEW) loadQueue();
  draw();
}

export function backToQueue() {
  if (waiting.length > 0) showFirst();
  else if (isAtEnd()) showSkipped();
  else loadQueue();
}

/** Whether the whole queue was read, and no node waits in it. */
function isAtEnd() {
  return waiting.length === 0 && unlabelled !== null && !reading && trouble === "";
}

function showSkipped() {
  skipped.clear();
  loadQueue();
}

/** A decision was taken back: its node is in turn again. */
export function putBack(id) {
  skipped.delete(id);
  waiting = [{ id, returned: true }, ...waiting.filter((each) => each.id !== id)];
  showFirst();
}

function reasonLine(turn) {
  const { title, words } = reasonOf(state.card);
  return element("p", { class: "why" }, turn.returned && "You took its label back. ", element("strong", {}, `${title}. `), words);
}

function ending() {
  if (trouble) return [sentence(trouble), button("Try again", loadQueue)];
  if (!isAtEnd()) return sentence("The next nodes are being computed …");
  if (left.skipped > 0) {
    const again = button([element("kbd", {}, "g"), element("span", {}, "Show them again")], showSkipped, { "aria-label": "Show them again" });
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
      const hint = each.returned ? "Label taken back" : reasonOf(each).title;
      return element("li", {}, nodeButton(each.id, show), element("span", { class: "hint" }, hint));
    }),
  );
  byId("queue-later").hidden = later.length === 0;
  byId("queue-skipped").hidden = skipped.size === 0 || waiting.length === 0;
  byId("queue-count").textContent = unlabelled === null ? "" : `${unlabelled.toLocaleString("en")} unlabelled`;
}
