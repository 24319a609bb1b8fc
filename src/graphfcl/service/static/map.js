/** The map: all nodes in two dimensions. Hovering names a node, a click opens it, a lasso selects. */

import { read, ServiceError } from "./api.js";
import { button, byId, counted, element, fill } from "./dom.js";
import { highlight, showPoints, startCanvas, whole, zoom } from "./map_canvas.js";
import { legendEntry, markedBy, UNKNOWN } from "./map_marks.js";
import { setLasso, startPointer, STEP } from "./map_pointer.js";
import { answerText, chosen, loadSelection, select, startSelection } from "./map_selection.js";
import { on, state } from "./state.js";
import { tellError } from "./status.js";
import { currentView, onView, openView } from "./views.js";

const PATIENCE = 1000; // milliseconds between requests while the map is laid out

let show = () => undefined;
let map = null; // the last answer of /v1/map
let latest = 0;

export function startMap(showNode) {
  show = (id) => {
    showNode(id);
    openView("node");
  };
  startCanvas();
  startPointer({ hover: describe, click: tap, enclose: (nodes) => select(nodes) });
  startSelection({ show, changed: drawSelection });
  byId("map-closer").addEventListener("click", () => zoom(STEP));
  byId("map-farther").addEventListener("click", () => zoom(1 / STEP));
  byId("map-whole").addEventListener("click", whole);
  byId("map-lasso").addEventListener("click", toggleLasso);
  byId("map-colour").addEventListener("change", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => map && draw());
  on("version", () => currentView() === "map" && load());
  on("card", drawSelection);
  onView("map", load);
}

/** Reads the map until that of the newest version is ready. */
async function load() {
  latest += 1;
  const mine = latest;
  for (;;) {
    try {
      const answer = await read("/v1/map");
      if (mine !== latest) return;
      take(answer);
      if (answer.status === "ready") return;
    } catch (error) {
      if (mine !== latest) return;
      if (error instanceof ServiceError) byId("map-count").textContent = error.message;
      else tellError(error);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, PATIENCE));
    if (mine !== latest || currentView() !== "map") return;
  }
}

function take(answer) {
  const another = map === null || answer.version !== map.version || answer.layout_version !== map.layout_version;
  map = answer;
  const { shown, total, status, changed_since: since } = map;
  const count = shown < total ? `${shown.toLocaleString("en")} of ${counted(total, "node")}, a sample` : counted(total, "node");
  const laying = shown === 0 ? "The map is being laid out …" : `${count}; being laid out again …`;
  byId("map-count").textContent = status === "ready" ? count : laying;
  byId("map-changed").textContent = since === null ? "changed" : `changed since version ${since}`;
  if (!another) return;
  loadSelection(map);
  draw();
}

function draw() {
  if (map === null) return;
  const { marks, legend } = markedBy(byId("map-colour").value, map);
  showPoints({ x: map.x, y: map.y, marks, flags: map.flags });
  fill(byId("map-legend"), legend.map(legendEntry));
  drawSelection();
}

function drawSelection() {
  if (map === null) return;
  highlight(chosen(), map.ids.indexOf(state.card?.id));
}

function toggleLasso() {
  const wanted = byId("map-lasso").getAttribute("aria-pressed") !== "true";
  byId("map-lasso").setAttribute("aria-pressed", String(wanted));
  setLasso(wanted);
}

/** Touch has no hover: a tap shows the name of the node and a button that opens it. */
function tap(node, touched) {
  if (touched) describe(node);
  else show(map.ids[node]);
}

function describe(node) {
  if (node < 0) {
    fill(byId("map-node"));
    return;
  }
  const id = map.ids[node];
  const doubt = map.flags[node] & UNKNOWN ? "" : `, doubt ${map.doubts[node]} %`;
  fill(
    byId("map-node"),
    button(id, () => show(id), { class: "node", title: `Show ${id}` }),
    element("span", { class: "hint" }, ` ${answerText(map, node)}${doubt}`),
  );
}
