/** What a version changed: nodes by predicted class before and after, recalls with intervals, and warnings. */

import { path, read, readPage, ServiceError } from "./api.js";
import { asSentence, button, byId, counted, element, fill, nodeButton, percent, sentence } from "./dom.js";
import { on } from "./state.js";

const PATIENCE = 700; // milliseconds between requests while the effect is computed
const PAGE = 50; // nodes that are listed at once
const UNKNOWN = "looks unknown";

let latest = 0;
let show = () => undefined;

export function startEffect(showNode) {
  show = showNode;
  on("version", () => loadEffect());
  return loadEffect();
}

/** Shows what one version changed, and moves the focus there. */
export function openEffect(version) {
  byId("effect-heading").focus();
  byId("effect-heading").scrollIntoView({ block: "nearest" });
  return loadEffect(version);
}

/** Reads the effect of a version, the newest by default, until it is computed. */
async function loadEffect(version = null) {
  latest += 1;
  const mine = latest;
  try {
    const wanted = version ?? (await read("/v1/model")).version;
    for (;;) {
      const answer = await read(path("versions", wanted, "effect"));
      if (mine !== latest) return;
      byId("effect-version").textContent = `Version ${wanted}`;
      if (answer.status !== "computing") {
        draw(wanted, answer);
        return;
      }
      fill(byId("effect"), sentence("What it changed is being computed …"));
      await new Promise((resolve) => setTimeout(resolve, PATIENCE));
      if (mine !== latest) return;
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (mine === latest) fill(byId("effect"), sentence(asSentence(error.message)));
  }
}

function draw(version, effect) {
  if (effect.status === "none") {
    fill(byId("effect"), sentence(asSentence(effect.why)));
    return;
  }
  const { changed, nodes, moves, warnings, doubts, accuracy, classes } = effect;
  fill(
    byId("effect"),
    warnings.map((words) => sentence(words, "warning")),
    doubts.length > 0 && doubtList(doubts),
    element("p", {}, changed === 0 ? `No answer changed, of ${counted(nodes, "node")}.` : `The answer changed for ${changed.toLocaleString("en")} of ${counted(nodes, "node")}.`),
    moves.length > 0 && moveTable(version, moves),
    accuracyLines(accuracy),
    classes.length > 0 && recallTable(classes),
  );
}

function doubtList(doubts) {
  const row = ({ id, label, guess, probability }) =>
    element(
      "li",
      {},
      nodeButton(id, show),
      element("span", { class: "hint" }, `labelled ${label}; the model expected ${guess} (${percent(probability)})`),
    );
  return element("ul", { class: "rows", "aria-label": "Labels that look wrong" }, doubts.map(row));
}

function moveTable(version, moves) {
  const head = ["Before", "After", "Nodes"].map((name) => element("th", { scope: "col" }, name));
  const rows = moves.flatMap((move) => moveRows(version, move));
  return element("table", {}, element("caption", { class: "unseen" }, "Nodes by their answer before and after"), element("thead", {}, element("tr", {}, head)), element("tbody", {}, rows));
}

/** The row of a move, and one below it for its nodes, which opens when the number is pressed. */
function moveRows(version, move) {
  const place = element("td", { colspan: 3, id: `move-${move.number}` });
  const below = element("tr", { hidden: true }, place);
  const words = `${counted(move.nodes, "node")} from ${nameOf(move.before)} to ${nameOf(move.after)}`;
  const toggle = button(move.nodes.toLocaleString("en"), open, { class: "small", "aria-expanded": "false", "aria-controls": place.id, "aria-label": words });
  function open() {
    below.hidden = !below.hidden;
    toggle.setAttribute("aria-expanded", String(!below.hidden));
    if (!place.hasChildNodes()) listNodes(version, move, place);
  }
  const labelled = move.labelled > 0 && element("span", { class: "hint" }, ` ${move.labelled.toLocaleString("en")} labelled`);
  const row = element("tr", {}, element("td", {}, nameOf(move.before)), element("td", {}, nameOf(move.after)), element("td", {}, toggle, labelled));
  return [row, below];
}

function nameOf(answer) {
  return answer ?? UNKNOWN;
}

async function listNodes(version, move, place) {
  const list = element("ul", { class: "chips", "aria-label": `Nodes from ${nameOf(move.before)} to ${nameOf(move.after)}` });
  const more = button("Show more", () => add(), { class: "quiet" });
  fill(place, list, more);
  let cursor = null;
  let reading = false;
  async function add() {
    if (reading) return;
    reading = true;
    try {
      const page = await readPage(`${path("versions", version, "moves", move.number)}?limit=${PAGE}`, cursor);
      if (page === null) throw new ServiceError(422, "The list has changed. Open it again.");
      list.append(...page.ids.map((id) => element("li", {}, nodeButton(id, show))));
      cursor = page.next_cursor;
      more.hidden = cursor === null;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      place.append(sentence(asSentence(error.message)));
    } finally {
      reading = false;
    }
  }
  await add();
}

function accuracyLines({ fit_before, fit_after, later_before, later_after }) {
  const line = (name, before, after) =>
    after && sentence(`${name}: ${recallText(after)}${before && recallText(before) !== recallText(after) ? `; before ${recallText(before)}` : ""}.`, "text");
  return [
    line("Right on validation nodes of the classes of the fit", fit_before, fit_after),
    line("Right on labels of later classes, each left out in turn", later_before, later_after),
  ];
}

/** "8 of 9 (57–98 %)". */
export function recallText(recall) {
  if (!recall) return "not measured";
  const { right, of, low, high } = recall;
  return `${right.toLocaleString("en")} of ${of.toLocaleString("en")} (${Math.round(100 * low)}–${Math.round(100 * high)}\u00a0%)`;
}

function recallTable(classes) {
  const head = ["Class", "Before", "After"].map((name) => element("th", { scope: "col" }, name));
  const rows = classes.map((each) =>
    element(
      "tr",
      { class: each.worse ? "warning" : null },
      element("th", { scope: "row" }, each.name),
      element("td", {}, recallText(each.before) === recallText(each.after) ? "the same" : recallText(each.before)),
      element("td", {}, recallText(each.after), each.worse && " – worse"),
    ),
  );
  return element(
    "details",
    {},
    element("summary", {}, "Recall of each class"),
    element("p", { class: "hint" }, "Nodes recognised, of those measured, and the 95 % interval."),
    element("table", {}, element("thead", {}, element("tr", {}, head)), element("tbody", {}, rows)),
  );
}
