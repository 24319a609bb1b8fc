/** The selected nodes of the map: selected by lasso or filters, shown as a table, put into the basket. */

import { collectAll } from "./basket.js";
import { button, byId, counted, element, fill, nodeButton } from "./dom.js";
import { CHANGED, DOUBTFUL, LABELLED, UNKNOWN } from "./map_marks.js";
import { caution } from "./status.js";

const ROWS = 50; // rows of the table at first, and added at a time
const LARGEST = 200; // nodes that go into the basket at once
const STATES = {
  any: () => true,
  unknown: (map, node) => map.flags[node] & UNKNOWN,
  doubtful: (map, node) => map.doubts[node] >= DOUBTFUL,
  changed: (map, node) => map.flags[node] & CHANGED,
  unlabelled: (map, node) => !(map.flags[node] & LABELLED),
  labelled: (map, node) => map.flags[node] & LABELLED,
};

let map = null;
let ids = new Set(); // of the selected nodes, which stay selected when the map changes
let rows = ROWS;
let wiring = { show: () => undefined, changed: () => undefined };

/** parts: {show(id), changed()}. */
export function startSelection(parts) {
  wiring = parts;
  byId("selection-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (map !== null) select(filtered());
  });
  byId("selection-basket").addEventListener("click", intoBasket);
  byId("selection-clear").addEventListener("click", () => select([]));
  byId("selection-more").addEventListener("click", () => {
    rows += ROWS;
    draw();
  });
}

/** Shows the selection on a new map: nodes that are on it stay selected. */
export function loadSelection(loaded) {
  map = loaded;
  const field = byId("selection-class");
  const wanted = field.value;
  const named = map.classes.map((name, place) => [String(name), place]).sort(([one], [other]) => one.localeCompare(other));
  fill(
    field,
    element("option", { value: "" }, "any class"),
    named.map(([name]) => element("option", { value: `=${name}` }, name)),
  );
  field.value = wanted;
  if (field.selectedIndex < 0) field.value = "";
  draw();
}

/** Replaces the selection by nodes, given by their places on the map. */
export function select(nodes) {
  ids = new Set(nodes.map((node) => map.ids[node]));
  rows = ROWS;
  draw();
  wiring.changed();
}

/** (n,) 1 for each node on the map that is selected. */
export function chosen() {
  return Uint8Array.from(map.ids, (id) => (ids.has(id) ? 1 : 0));
}

function filtered() {
  const name = byId("selection-class").value.slice(1);
  const place = byId("selection-class").value === "" ? null : map.classes.findIndex((each) => String(each) === name);
  const accepts = STATES[byId("selection-state").value];
  const matches = (node) => (place === null || (map.class_places[node] === place && !(map.flags[node] & UNKNOWN))) && accepts(map, node);
  return [...map.ids.keys()].filter(matches);
}

/** The label of a node, or the prediction of the model. */
export function answerText({ classes, class_places, flags }, node) {
  if (flags[node] & UNKNOWN) return "looks unknown";
  const name = classes[class_places[node]];
  return flags[node] & LABELLED ? `labelled ${name}` : `perhaps ${name}`;
}

function draw() {
  const nodes = [...map.ids.keys()].filter((node) => ids.has(map.ids[node]));
  nodes.sort((one, other) => map.doubts[other] - map.doubts[one]);
  byId("selection-count").textContent = nodes.length === 0 ? "none" : counted(nodes.length, "node");
  fill(byId("selection-rows"), nodes.slice(0, rows).map(row));
  byId("selection-table").hidden = nodes.length === 0;
  byId("selection-help").hidden = nodes.length > 0;
  for (const id of ["selection-basket", "selection-clear"]) byId(id).hidden = nodes.length === 0;
  byId("selection-more").hidden = nodes.length <= rows;
  byId("selection-more").textContent = `Show more (${Math.max(0, nodes.length - rows).toLocaleString("en")} left)`;
}

function row(node) {
  const id = map.ids[node];
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, nodeButton(id, wiring.show)),
    element("td", {}, answerText(map, node)),
    element("td", { class: "number" }, `${map.doubts[node]} %`),
    element("td", {}, map.flags[node] & CHANGED ? "changed" : ""),
    element("td", {}, button("×", () => drop(id), { class: "small", "aria-label": `Take ${id} out of the selection` })),
  );
}

function drop(id) {
  ids.delete(id);
  draw();
  wiring.changed();
  byId("selection-heading").focus();
}

/** Puts the selection into the basket without labelled nodes, since the basket is for a new class. */
function intoBasket() {
  const nodes = [...map.ids.keys()].filter((node) => ids.has(map.ids[node]));
  const free = nodes.filter((node) => !(map.flags[node] & LABELLED));
  const labelled = nodes.length - free.length;
  const left = labelled === 0 ? "" : ` ${counted(labelled, "node")} with a label ${labelled === 1 ? "is" : "are"} left out.`;
  if (free.length === 0) caution(`Nothing was put into the basket.${left}`);
  else if (free.length > LARGEST) caution(`These are ${counted(free.length, "node")}: select at most ${LARGEST} for the basket.`);
  else collectAll(free.map((node) => map.ids[node]), left);
}
