/** Draws the nodes of the map on a canvas, moves and zooms it, and finds the nodes at a position. */

import { byId } from "./dom.js";
import { colourOf, LABELLED } from "./map_marks.js";
import { HALO, makeStamps, packed, press, stampOf } from "./map_stamps.js";

const EDGE = 18; // pixels around the whole map
const REACH = 14; // largest distance in pixels from the pointer to the node under it
const DEEPEST = 400; // largest zoom, relative to the whole map
const BUDGET = 16; // milliseconds of a frame until the nodes that are left wait for the next one
const CHUNK = 500; // nodes that are drawn between two looks at the clock

let points = null; // {x, y, marks, flags}: columns of the nodes that are drawn
let order = new Uint32Array(0); // the nodes by mark: those of a later one are drawn above the others
let selected = new Uint8Array(0);
let shown = -1; // the node of the card
let near = -1; // the node under the pointer
let view = null; // {scale, left, top}: pixel = position · scale + left or top
let wholeScale = 1;
let marks = null; // pixels of the marks: {side, stamps, radius, across}
let ground = 0; // the pixel of an empty place
let image = null;
let lasso = null; // corners of the lasso in pixels while it is being drawn
let waiting = false;
let drawn = 0; // how many of the halos and nodes of this picture are drawn

export function startCanvas() {
  new ResizeObserver(fit).observe(byId("map"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawMarks);
}

/** Draws nodes: columns x, y, marks and flags. The view stays as it is. */
export function showPoints(columns) {
  points = columns;
  near = -1;
  order = Uint32Array.from(points.marks.keys()).sort((one, other) => points.marks[one] - points.marks[other]);
  if (view === null) whole();
  draw();
}

/** chosen: (n,) 1 for each selected node. card: the node that the card shows, or -1. */
export function highlight(chosen, card) {
  selected = chosen;
  shown = card;
  draw();
}

/** The corners of the lasso that is being drawn, in pixels, or null. */
export function showLasso(corners) {
  lasso = corners;
  draw();
}

/** The node under the pointer, or -1. */
export function showNear(node) {
  near = node;
  draw();
}

/** Shows all nodes. */
export function whole() {
  const { width, height } = size();
  if (points === null || points.x.length === 0 || width === 0) return;
  const [left, right, top, bottom] = [...range(points.x), ...range(points.y)];
  const scale = Math.min((width - 2 * EDGE) / Math.max(1, right - left), (height - 2 * EDGE) / Math.max(1, bottom - top));
  wholeScale = scale;
  view = { scale, left: width / 2 - (scale * (left + right)) / 2, top: height / 2 - (scale * (top + bottom)) / 2 };
  draw();
}

export function zoom(factor) {
  const { width, height } = size();
  zoomAt(factor, width / 2, height / 2);
}

export function zoomAt(factor, x, y) {
  if (view === null) return;
  const scale = Math.min(DEEPEST * wholeScale, Math.max(wholeScale / 2, view.scale * factor));
  const ratio = scale / view.scale;
  view = { scale, left: x - ratio * (x - view.left), top: y - ratio * (y - view.top) };
  draw();
}

export function shift(across, down) {
  if (view === null) return;
  view = { ...view, left: view.left + across, top: view.top + down };
  draw();
}

function range(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

function size() {
  const canvas = byId("map");
  return { width: canvas.clientWidth, height: canvas.clientHeight };
}

/** Resizes the canvas to its pixels on the screen; the centre stays where it is. */
function fit() {
  const canvas = byId("map");
  const { width, height } = size();
  if (width === 0) return; // the view is closed
  const density = Math.min(2, devicePixelRatio || 1);
  const [across, down] = [Math.round(width * density), Math.round(height * density)];
  if (canvas.width === across && canvas.height === down) return;
  const before = { width: canvas.width / density, height: canvas.height / density };
  [canvas.width, canvas.height] = [across, down];
  if (view === null) whole();
  else shift((width - before.width) / 2, (height - before.height) / 2);
  draw();
}

// Drawing

/** Draws everything again in the next frame. */
function draw() {
  drawn = 0;
  drawSoon();
}

function drawSoon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawNow();
  });
}

function redrawMarks() {
  marks = null;
  draw();
}

function drawNow() {
  if (points === null || view === null) return;
  const end = performance.now() + BUDGET;
  const canvas = byId("map");
  const { width } = size();
  if (width === 0) return;
  const density = canvas.width / width;
  const context = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
  prepareStamps(density);
  if (image?.width !== canvas.width || image.height !== canvas.height) image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  if (drawn === 0) pixels.fill(ground);
  pressNodes(pixels, canvas.width, canvas.height, density, end);
  context.putImageData(image, 0, 0);
  context.setTransform(density, 0, 0, density, 0, 0);
  drawRings(context);
  if (lasso !== null) drawLasso(context);
  if (drawn < selected.length + order.length) drawSoon();
}

/** Goes on with the nodes that are completely on the canvas, above the halos of the selected ones, until `end`. */
function pressNodes(pixels, width, height, density, end) {
  const { side, stamps } = marks;
  const { x, y, marks: kinds, flags } = points;
  const scale = view.scale * density;
  const [left, top] = [view.left * density - side / 2, view.top * density - side / 2];
  const cornerOf = (node) => {
    const across = Math.round(x[node] * scale + left);
    const down = Math.round(y[node] * scale + top);
    return across < 0 || down < 0 || across + side > width || down + side > height ? -1 : down * width + across;
  };
  const count = selected.length + order.length;
  do {
    for (const stop = Math.min(count, drawn + CHUNK); drawn < stop; drawn += 1) {
      const isHalo = drawn < selected.length;
      const node = isHalo ? drawn : order[drawn - selected.length];
      const corner = isHalo && !selected[node] ? -1 : cornerOf(node);
      if (corner >= 0) press(pixels, stamps[isHalo ? HALO : stampOf(kinds[node], flags[node] & LABELLED)], corner);
    }
  } while (drawn < count && performance.now() < end);
}

/** Marks are larger if there is room: few nodes on a large canvas, or a zoomed map. */
function prepareStamps(density) {
  const { width, height } = size();
  const room = Math.min(5, Math.max(2, 0.75 * Math.sqrt((width * height) / points.x.length)));
  const radius = Math.round(2 * room * Math.min(2, Math.max(1, (view.scale / wholeScale) ** 0.25))) / 2;
  const across = byId("map").width;
  if (marks !== null && marks.radius === radius && marks.across === across) return;
  marks = { ...makeStamps(radius * density, across), radius, across };
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colourOf("--surface").slice(at, at + 2), 16));
  ground = packed(red, green, blue);
}

/** Rings around the node of the card and the node under the pointer. */
function drawRings(context) {
  context.lineWidth = 3;
  context.strokeStyle = colourOf("--text");
  context.beginPath();
  for (const node of [shown, near]) if (node >= 0) ring(context, node, marks.radius + 5);
  context.stroke();
}

function ring(context, node, radius) {
  const [x, y] = pixelOf(node);
  context.moveTo(x + radius, y);
  context.arc(x, y, radius, 0, 2 * Math.PI);
}

function drawLasso(context) {
  context.lineWidth = 2;
  context.strokeStyle = colourOf("--accent");
  context.setLineDash([6, 4]);
  context.beginPath();
  for (const [x, y] of lasso) context.lineTo(x, y);
  context.closePath();
  context.stroke();
  context.setLineDash([]);
}

function pixelOf(node) {
  return [points.x[node] * view.scale + view.left, points.y[node] * view.scale + view.top];
}

// Nodes at a position

/** The node nearest to a position, or -1 if none is near. */
export function nodeAt({ x, y }) {
  let [best, least] = [-1, REACH ** 2];
  if (view === null) return best;
  for (let node = 0; node < (points?.x.length ?? 0); node += 1) {
    const across = points.x[node] * view.scale + view.left - x;
    const down = points.y[node] * view.scale + view.top - y;
    const distance = across * across + down * down;
    if (distance < least) [best, least] = [node, distance];
  }
  return best;
}

/** The nodes inside a polygon, by ray casting: a ray to the left crosses its sides an odd number of times. */
export function inside(corners) {
  const nodes = [];
  for (let node = 0; node < points.x.length; node += 1) {
    const [x, y] = pixelOf(node);
    let odd = false;
    for (let to = 0, from = corners.length - 1; to < corners.length; from = to, to += 1) {
      const [[a, b], [c, d]] = [corners[from], corners[to]];
      if (b > y !== d > y && x > a + ((c - a) * (y - b)) / (d - b)) odd = !odd;
    }
    if (odd) nodes.push(node);
  }
  return nodes;
}
