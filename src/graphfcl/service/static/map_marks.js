/** The marks of the map: shapes and colours of nodes for each way to colour them. */

import { element } from "./dom.js";

export const UNKNOWN = 1; // flags of a node, as the service sends them
export const CHANGED = 2;
export const LABELLED = 4;
export const DOUBTFUL = 50; // doubt, from 0 to 100, from which on a node is doubtful

const CIRCLE = 24; // corners that look round
const polygon = (count, turn = 0, radii = [1]) =>
  Array.from({ length: count }, (_, place) => {
    const angle = (2 * Math.PI * place) / count + turn - Math.PI / 2;
    const radius = radii[place % radii.length];
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
const PLUS = [[1, 3], [1, 1], [3, 1], [3, -1], [1, -1], [1, -3], [-1, -3], [-1, -1], [-3, -1], [-3, 1], [-1, 1], [-1, 3]];
const turned = (corners, angle) =>
  corners.map(([x, y]) => [x * Math.cos(angle) - y * Math.sin(angle), x * Math.sin(angle) + y * Math.cos(angle)]);
const plus = PLUS.map(([x, y]) => [0.36 * x, 0.36 * y]);
const circle = (size) => polygon(CIRCLE, 0, [size]);

const OTHERS = 0; // nodes of rarer classes, or nodes that are not highlighted
const LOOKS_UNKNOWN = 8;
const DOUBT = 9; // the first of four
const MOVED = 13;
const COLOURED = 7; // classes with a colour of their own, as in the picture of a neighbourhood
/** corners: of a mark with radius 1. colour: its name in page.css. Later ones are drawn above earlier ones. */
export const MARKS = [
  { corners: circle(0.55), colour: "--class-0" },
  { corners: circle(0.95), colour: "--class-1" },
  { corners: polygon(4, Math.PI / 4, [1.15]), colour: "--class-2" },
  { corners: polygon(3, 0, [1.25]), colour: "--class-3" },
  { corners: polygon(3, Math.PI, [1.25]), colour: "--class-4" },
  { corners: plus, colour: "--class-5" },
  { corners: turned(plus, Math.PI / 4), colour: "--class-6" },
  { corners: polygon(10, 0, [1.3, 0.6]), colour: "--class-7" },
  { corners: polygon(4, 0, [1.3]), colour: "--unknown" },
  { corners: circle(0.45), colour: "--class-0" },
  { corners: circle(0.65), colour: "--class-5" },
  { corners: circle(0.9), colour: "--class-2" },
  { corners: circle(1.25), colour: "--unknown" },
  { corners: polygon(4, Math.PI / 4, [1.3]), colour: "--caution" },
];

/** A mark around a place; hollow ones are of nodes without a label. */
export function drawMark(context, mark, x, y, radius, colour, ground, hollow) {
  const line = Math.max(1, 0.36 * radius);
  const size = radius - (hollow ? line / 2 : 0);
  context.beginPath();
  for (const [across, down] of MARKS[mark].corners) context.lineTo(x + size * across, y + size * down);
  context.closePath();
  context.fillStyle = hollow ? ground : colour;
  context.fill();
  if (!hollow) return;
  context.strokeStyle = colour;
  context.lineWidth = line;
  context.lineJoin = "round";
  context.stroke();
}

/** Colours of page.css by their names. */
export function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/**
 * The mark of each node, and the entries of a legend: {mark, text, count}.
 * points: columns of the answer of /v1/map. by: "class", "unknown", "doubt" or "changed".
 */
export function markedBy(by, points) {
  const { marks, texts } = { class: byClass, unknown: byUnknown, doubt: byDoubt, changed: byChanged }[by](points);
  const counts = new Uint32Array(MARKS.length);
  for (const mark of marks) counts[mark] += 1;
  return { marks, legend: [...texts].map(([mark, text]) => ({ mark, text, count: counts[mark] })).filter((each) => each.count > 0) };
}

function byClass({ classes, class_places, flags }) {
  const counts = classes.map((_, place) => [place, 0]);
  class_places.forEach((place, node) => (counts[place][1] += flags[node] & UNKNOWN ? 0 : 1));
  const ordered = counts.filter(([, count]) => count > 0).sort((one, other) => other[1] - one[1]);
  const markOfClass = new Uint8Array(classes.length);
  ordered.slice(0, COLOURED).forEach(([place], rank) => (markOfClass[place] = rank + 1));
  const marks = Uint8Array.from(class_places, (place, node) => (flags[node] & UNKNOWN ? LOOKS_UNKNOWN : markOfClass[place]));
  const texts = new Map(ordered.slice(0, COLOURED).map(([place], rank) => [rank + 1, String(classes[place])]));
  return { marks, texts: texts.set(LOOKS_UNKNOWN, "unknown").set(OTHERS, "other classes") };
}

function byUnknown({ flags }) {
  const marks = Uint8Array.from(flags, (each) => (each & UNKNOWN ? LOOKS_UNKNOWN : OTHERS));
  return { marks, texts: new Map([[LOOKS_UNKNOWN, "looks unknown"], [OTHERS, "looks known"]]) };
}

function byDoubt({ doubts }) {
  const marks = Uint8Array.from(doubts, (each) => DOUBT + Math.min(3, Math.floor(each / 25)));
  const texts = ["under 25 %", "25 to 49 %", "50 to 74 %", "75 % or more"];
  return { marks, texts: new Map(texts.map((text, step) => [DOUBT + step, text]).reverse()) };
}

function byChanged({ flags }) {
  const marks = Uint8Array.from(flags, (each) => (each & CHANGED ? MOVED : OTHERS));
  return { marks, texts: new Map([[MOVED, "changed"], [OTHERS, "not changed"]]) };
}

/** An entry of the legend: its mark as on the map, what it means, and how many nodes have it. */
export function legendEntry({ mark, text, count }) {
  const scale = devicePixelRatio || 1;
  const picture = element("canvas", { class: "map-mark", width: 16 * scale, height: 16 * scale, "aria-hidden": "true" });
  const context = picture.getContext("2d");
  drawMark(context, mark, 8 * scale, 8 * scale, 5.5 * scale, colourOf(MARKS[mark].colour), colourOf("--surface"), false);
  return element("li", {}, picture, `${text} `, element("span", { class: "hint" }, count.toLocaleString("en")));
}
