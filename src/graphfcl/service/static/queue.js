/** "Label next": the nodes that the service suggests, one after the other. */

import { read, ServiceError } from "./api.js";
import { asSentence, byId, button, element, fill, nodeButton, sentence } from "./dom.js";
import { on, state } from "./state.js";

const BUDGET = 20;
const FEW = 3; // suggestions left, when more are asked for
const AHEAD = 4; // suggestions shown after the one in turn
const PATIENCE = [700, 1000, 1500, 2000, 3000];

const REASONS = {
  cluster: "Stands for a group",
  unknown: "Looks unknown",
  uncovered: "Few labels nearby",
  between: "Between two classes",
  random: "Drawn at random",
};

let waiting = []; // suggestions, the first is in turn
const passed = new Set(); // ids that were answered or skipped
let show = () => undefined;
let trouble = "";
let asking = false;

export function startQueue(showNode) {
  show = showNode;
  on("card", draw);
  on("version", ({ forget } = {}) => {
    if (!forget) return;
    waiting = [];
    passed.clear();
    loadQueue();
  });
  byId("queue-refresh").addEventListener("click", () => {
    waiting = waiting.slice(0, 1);
    passed.clear();
    loadQueue();
  });
  return loadQueue();
}

/** Asks for suggestions until they are computed. The one in turn stays; those that were passed are left out. */
export async function loadQueue() {
  if (asking) return;
  asking = true;
  trouble = "";
  try {
    for (let tried = 0; ; tried += 1) {
      draw();
      const answer = await read(`/v1/suggestions?budget=${BUDGET}&strategy=auto`);
      const ready = answer.status === "ready";
      if (ready || waiting.length === 0) take(answer.suggestions);
      if (ready) break;
      await new Promise((resolve) => setTimeout(resolve, PATIENCE[Math.min(tried, PATIENCE.length - 1)]));
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    trouble = error.status === 501 ? "This service makes no suggestions. Search for a node to label it." : error.message;
  } finally {
    asking = false;
    draw();
  }
}

function take(suggestions) {
  const turn = waiting.slice(0, 1);
  waiting = [...turn, ...suggestions.filter((each) => each.id !== turn[0]?.id && !passed.has(each.id))];
  const idle = state.wanted === null || passed.has(state.wanted);
  if (turn.length === 0 && waiting.length > 0 && idle) show(waiting[0].id);
  draw();
}

/** Shows the next suggestion; a node that was found otherwise leads back to the one in turn. */
export function goOn() {
  const shown = state.wanted;
  if (shown !== null) {
    passed.add(shown);
    waiting = waiting.filter((each) => each.id !== shown);
  }
  if (waiting.length > 0) show(waiting[0].id);
  if (waiting.length < FEW) loadQueue();
  draw();
}

export function backToQueue() {
  if (waiting.length > 0) show(waiting[0].id);
}

/** A decision was taken back: its node is in turn again. */
export function putBack(id) {
  passed.delete(id);
  const known = waiting.find((each) => each.id === id) ?? { id, reason: "", why: "You took its label back.", classes: [] };
  waiting = [known, ...waiting.filter((each) => each.id !== id)];
  show(id);
}

function reasonOf({ reason, why }) {
  return element("p", { class: "why" }, REASONS[reason] && element("strong", {}, `${REASONS[reason]}. `), why && asSentence(why));
}

function draw() {
  const [turn, ...later] = waiting;
  const shown = state.card?.id;
  fill(
    byId("queue-reason"),
    turn && turn.id === shown && reasonOf(turn),
    turn && shown !== undefined && turn.id !== shown && button("Back to the queue", backToQueue),
    !turn && sentence(trouble || (asking ? "Suggestions are being computed …" : "Nothing is left to suggest."), "hint"),
  );
  fill(
    byId("queue-next"),
    later.slice(0, AHEAD).map((each) =>
      element("li", {}, nodeButton(each.id, show), element("span", { class: "hint" }, REASONS[each.reason] ?? "")),
    ),
  );
  byId("queue-later").hidden = later.length === 0;
  byId("queue-count").textContent = waiting.length === 0 ? "" : `${waiting.length} waiting`;
}
