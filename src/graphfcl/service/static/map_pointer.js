/** Pointers and keys on the map: move, zoom, hover over a node, open it, draw a lasso. */

import { byId } from "./dom.js";
import { inside, nodeAt, shift, showLasso, showNear, whole, zoom, zoomAt } from "./map_canvas.js";

const STILL = 5; // pixels that the pointer may move during a click
export const STEP = 1.5; // zoom factor of one key press
const SHIFT = 60; // pixels of one press of an arrow key

const pointers = new Map(); // pointers that are down: {x, y} of each
let pressed = null; // {x, y, moved, encloses} if only one is down
let lasso = []; // its corners
let lassoOn = false;
let near = -1;
let react = { hover: () => undefined, click: () => undefined, enclose: () => undefined };

/** reactions: {hover(node or -1), click(node, touched), enclose(nodes)}. */
export function startPointer(reactions) {
  react = reactions;
  const canvas = byId("map");
  canvas.addEventListener("wheel", onWheel, { passive: false });
  canvas.addEventListener("keydown", onKey);
  canvas.addEventListener("pointerdown", onDown);
  canvas.addEventListener("pointermove", onMove);
  canvas.addEventListener("pointerup", onUp);
  canvas.addEventListener("pointercancel", onCancel);
  canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hover(-1)); // a tap stays
}

/** Whether a pointer that is dragged draws a lasso; with the shift key it always does. */
export function setLasso(wanted) {
  lassoOn = wanted;
  byId("map").dataset.lasso = String(wanted);
}

function place(event) {
  const box = byId("map").getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

function onDown(event) {
  if (event.button !== 0) return;
  const at = place(event);
  pointers.set(event.pointerId, at);
  byId("map").setPointerCapture(event.pointerId);
  if (pointers.size > 1) {
    pressed = null;
    showLasso(null);
    return;
  }
  pressed = { ...at, moved: false, encloses: lassoOn || event.shiftKey };
  lasso = [[at.x, at.y]];
}

function onMove(event) {
  const at = place(event);
  const last = pointers.get(event.pointerId);
  if (last === undefined) {
    hover(nodeAt(at));
    return;
  }
  if (pointers.size === 2) pinch(event.pointerId, last, at);
  pointers.set(event.pointerId, at);
  if (pressed === null) return;
  pressed.moved ||= Math.hypot(at.x - pressed.x, at.y - pressed.y) > STILL;
  if (!pressed.moved) return;
  if (pressed.encloses) {
    lasso.push([at.x, at.y]);
    showLasso(lasso);
  } else shift(at.x - last.x, at.y - last.y);
}

/** Two fingers move and scale the map. */
function pinch(moving, last, at) {
  const [[, other]] = [...pointers].filter(([pointer]) => pointer !== moving);
  const distance = (one) => Math.max(1, Math.hypot(one.x - other.x, one.y - other.y));
  shift((at.x - last.x) / 2, (at.y - last.y) / 2);
  zoomAt(distance(at) / distance(last), (at.x + other.x) / 2, (at.y + other.y) / 2);
}

function onUp(event) {
  const at = place(event);
  pointers.delete(event.pointerId);
  if (pressed === null) return;
  const { moved, encloses } = pressed;
  pressed = null;
  showLasso(null);
  if (encloses && moved) react.enclose(inside(lasso));
  const node = moved ? -1 : nodeAt(at);
  if (node >= 0) react.click(node, event.pointerType !== "mouse");
}

function onCancel(event) {
  pointers.delete(event.pointerId);
  pressed = null;
  showLasso(null);
}

function onWheel(event) {
  event.preventDefault();
  const { x, y } = place(event);
  zoomAt(2 ** (-event.deltaY / (event.deltaMode === 0 ? 300 : 10)), x, y);
}

function onKey(event) {
  const actions = {
    ArrowLeft: () => shift(SHIFT, 0),
    ArrowRight: () => shift(-SHIFT, 0),
    ArrowUp: () => shift(0, SHIFT),
    ArrowDown: () => shift(0, -SHIFT),
    "+": () => zoom(STEP),
    "-": () => zoom(1 / STEP),
    0: whole,
  };
  if (!(event.key in actions) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  actions[event.key]();
}

function hover(node) {
  if (node === near) return;
  near = node;
  showNear(node);
  react.hover(node);
}
