/** The neighbourhood of the current node. The service sends the positions; a list shows the same without a canvas. */

import { button, byId, counted, element, fill, nodeButton } from "./dom.js";
import { neighboursAddress, readReady } from "./ready.js";
import { say, tellError } from "./status.js";

const COLOURS = 7; // of the classes that are most frequent in the picture; the others are grey
// A mark for each colour, so that colours need not be distinguished; page.css has the same marks for the legend.
const MARKS = [
  { shape: "ellipse", width: 9, height: 9 },
  { shape: "ellipse" },
  { shape: "rectangle" },
  { shape: "triangle" },
  { shape: "polygon", "shape-polygon-points": "-1 -1 1 -1 0 1" },
  { shape: "polygon", "shape-polygon-points": "-.33 -1 .33 -1 .33 -.33 1 -.33 1 .33 .33 .33 .33 1 -.33 1 -.33 .33 -1 .33 -1 -.33 -.33 -.33" },
  { shape: "polygon", "shape-polygon-points": "-1 -1 1 -1 0 0 1 1 -1 1 0 0" },
  { shape: "star", width: 16, height: 16 },
];
const UNKNOWN = COLOURS + 1; // the colour of nodes that look unknown
const ADDED = 40; // most neighbours that one expansion adds
const RADIUS = 0.12; // of their ring, where the picture reaches from -1 to 1
const NAMED = 14; // with at most this many nodes, all names are shown

const SIDES = 60; // pixels that names may need beside the outermost nodes

let latest = 0;
let drawing = null; // the picture on the canvas
let content = null; // {nodes, edges, shown, colours}

export function startPicture(show) {
  byId("picture-closer").addEventListener("click", () => zoom(1.4));
  byId("picture-farther").addEventListener("click", () => zoom(1 / 1.4));
  byId("picture-whole").addEventListener("click", () => drawing?.fit(undefined, 24));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => content && drawCanvas(show));
}

/** Shows the neighbourhood of a node, again if the model has changed. */
export async function showPicture(id, show) {
  latest += 1;
  const mine = latest;
  try {
    const { nodes, edges, total } = await readReady(neighboursAddress(id));
    if (mine !== latest) return;
    content = { nodes, edges, shown: id, colours: coloursOf(nodes), total, added: 0 };
    drawAll(show);
  } catch (error) {
    if (mine === latest) byId("picture-legend").replaceChildren(element("li", { class: "hint" }, error.message));
  }
}

function drawAll(show) {
  drawCanvas(show);
  drawLegend();
  drawList(show);
}

/** Adds the neighbours of a node that is in the picture, around it. */
async function expand(id, show) {
  const mine = latest;
  let around;
  try {
    around = await readReady(neighboursAddress(id));
  } catch (error) {
    tellError(error);
    return;
  }
  if (mine !== latest || content === null) return;
  const { nodes, edges } = content;
  const place = new Map(nodes.map((node, number) => [node.id, number]));
  const centre = nodes[place.get(id)];
  const fresh = around.nodes.filter((node) => node.hops === 1 && !place.has(node.id)).slice(0, ADDED);
  fresh.forEach((node, number) => {
    const turn = (2 * Math.PI * number) / fresh.length;
    place.set(node.id, nodes.length);
    nodes.push({ ...node, x: centre.x + RADIUS * Math.cos(turn), y: centre.y + RADIUS * Math.sin(turn), hops: centre.hops + 1 });
  });
  const drawn = new Set(edges.map(([from, to]) => `${Math.min(from, to)} ${Math.max(from, to)}`));
  for (const [from, to] of around.edges) {
    const ends = [place.get(around.nodes[from].id), place.get(around.nodes[to].id)];
    const key = `${Math.min(...ends)} ${Math.max(...ends)}`;
    if (ends.includes(undefined) || drawn.has(key)) continue;
    drawn.add(key);
    edges.push(ends);
  }
  content.colours = coloursOf(nodes);
  content.added += fresh.length;
  drawAll(show);
  say(fresh.length === 0 ? `All neighbours of ${id} are in the picture.` : `${counted(fresh.length, "neighbour")} of ${id} added to the picture.`);
}

/** Whether a node has no label and looks like none of the classes. */
function isUnknown(node) {
  return node.label === null && node.unknown;
}

function className(node) {
  return node.label ?? node.predicted;
}

/** The number of a colour for each class, by how many nodes have it; 0 for the others. Unknown nodes have no class. */
function coloursOf(nodes) {
  const counts = new Map();
  for (const node of nodes.filter((each) => !isUnknown(each))) counts.set(className(node), (counts.get(className(node)) ?? 0) + 1);
  const ordered = [...counts].sort((one, other) => other[1] - one[1]).map(([name]) => name);
  return new Map(ordered.map((name, place) => [name, place < COLOURS ? place + 1 : 0]));
}

function zoom(factor) {
  if (drawing === null) return;
  const middle = { x: drawing.width() / 2, y: drawing.height() / 2 };
  drawing.zoom({ level: drawing.zoom() * factor, renderedPosition: middle });
}

function elements({ nodes, edges, shown, colours }) {
  return [
    ...nodes.map((node, place) => ({
      data: {
        id: `n${place}`,
        name: node.id,
        colour: isUnknown(node) ? UNKNOWN : colours.get(className(node)),
        labelled: node.label === null ? 0 : 1,
        shown: node.id === shown ? 1 : 0,
        hops: node.hops,
      },
      position: { x: 1000 * node.x, y: 1000 * node.y },
    })),
    ...edges.map(([from, to], place) => ({ data: { id: `e${place}`, source: `n${from}`, target: `n${to}` } })),
  ];
}

function style(nodeCount) {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colours = [...Array.from({ length: COLOURS + 1 }, (_, number) => colour(`--class-${number}`)), colour("--unknown")];
  const text = { color: colour("--text"), "font-size": 12, "text-outline-color": colour("--surface"), "text-outline-width": 2 };
  const written = { label: "data(name)", "text-valign": "bottom", "text-margin-y": 4, "text-max-width": 140, "text-wrap": "ellipsis" };
  return [
    {
      selector: "node",
      style: {
        width: 13,
        height: 13,
        "border-width": 2.5,
        "border-color": (node) => colours[node.data("colour")],
        "background-color": (node) => (node.data("labelled") ? colours[node.data("colour")] : colour("--surface")),
        ...text,
        ...(nodeCount <= NAMED ? written : {}),
      },
    },
    ...MARKS.map((mark, number) => ({ selector: `node[colour = ${number}]`, style: mark })),
    { selector: `node[colour = ${UNKNOWN}]`, style: { shape: "diamond", width: 16, height: 16, "border-width": 2 } },
    { selector: "edge", style: { width: 1, "line-color": colour("--line-strong"), "curve-style": "haystack" } },
    { selector: "node[shown = 1]", style: { width: 22, height: 22, "border-width": 5, "font-weight": "bold", "z-index": 9, ...written } },
    { selector: "node.named", style: { "z-index": 10, ...written } },
  ];
}

function drawCanvas(show) {
  const { nodes } = content;
  drawing?.destroy();
  const coarse = matchMedia("(pointer: coarse)").matches; // on touch screens, a finger on the picture scrolls the page
  drawing = cytoscape({
    container: byId("picture"),
    elements: elements(content),
    style: style(nodes.length),
    layout: { name: "preset", fit: false },
    autoungrabify: true,
    boxSelectionEnabled: false,
    userZoomingEnabled: false,
    userPanningEnabled: !coarse,
    minZoom: 0.01,
    maxZoom: 4,
  });
  spread(drawing);
  drawing.on("mouseover", "node", (event) => event.target.addClass("named"));
  drawing.on("mouseout", "node", (event) => event.target.removeClass("named"));
  drawing.on("tap", "node", (event) => {
    const id = event.target.data("name");
    if (event.originalEvent?.shiftKey) expand(id, show);
    else show(id);
  });
}

/** Converts positions to pixels of the canvas, so that nodes and names have the same size in every picture. */
function spread(picture) {
  const [across, down] = [picture.width() - 2 * SIDES, picture.height() - 70];
  const points = picture.nodes().map((node) => node.position());
  const range = (axis) => [Math.min(...points.map((each) => each[axis])), Math.max(...points.map((each) => each[axis]))];
  if (points.length === 0) return;
  const [[left, right], [top, bottom]] = [range("x"), range("y")];
  const scale = (value, low, high, length) => (high > low ? ((value - low) / (high - low)) * length : length / 2);
  picture.nodes().positions((node) => ({
    x: scale(node.position("x"), left, right, across) + SIDES,
    y: scale(node.position("y"), top, bottom, down) + 28,
  }));
  picture.viewport({ zoom: 1, pan: { x: 0, y: 0 } });
}

function drawLegend() {
  const { nodes, edges, colours } = content;
  const named = [...colours].filter(([, number]) => number > 0);
  fill(
    byId("picture-legend"),
    named.map(([name, number]) => element("li", {}, element("span", { class: "swatch", "data-colour": number }), name)),
    nodes.some(isUnknown) && element("li", {}, element("span", { class: "swatch", "data-unknown": true }), "unknown"),
    colours.size > named.length && element("li", {}, element("span", { class: "swatch", "data-colour": 0 }), "other classes"),
  );
  const shapes = nodes.some(isUnknown) ? " Diamond: looks unknown." : "";
  const way = " Shift and click: expand.";
  byId("picture-count").textContent =
    `${extent()}, ${counted(edges.length, "link")}. Filled: labelled. Hollow: the model’s guess.${shapes}${way}`;
}

/** How much of the neighbourhood is in the picture: "150 of 608 nodes within two steps". */
function extent() {
  const { nodes, total, added } = content;
  const shown = nodes.length - added;
  const all = typeof total === "number" ? total.toLocaleString("en") : "many";
  const more = added > 0 ? `, and ${added} more around expanded nodes` : "";
  return total === shown ? `All ${counted(shown, "node")} within two steps${more}` : `${shown} of ${all} nodes within two steps${more}`;
}

function drawList(show) {
  const { nodes, shown } = content;
  const rows = nodes.filter((node) => node.id !== shown).map((node) =>
    element(
      "li",
      {},
      nodeButton(node.id, show),
      button("Expand", () => expand(node.id, show), { class: "quiet", "aria-label": `Expand ${node.id} in the picture` }),
      element("span", { class: "hint" }, `${describe(node)}, ${counted(node.hops, "step")} away`),
    ),
  );
  fill(byId("picture-list"), rows.length > 0 ? rows : element("li", { class: "hint" }, "It has no neighbours."));
}

function describe(node) {
  if (isUnknown(node)) return "looks unknown";
  return node.label ?? `perhaps ${node.predicted}`;
}
