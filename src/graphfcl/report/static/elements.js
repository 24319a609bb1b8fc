"use strict";
// Parts of the page. Texts become text nodes, so nothing that a file says is read as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const DRAWN = new Set(["svg", "g", "path", "line", "circle", "rect", "text", "polygon", "title"]);

function element(tag, attributes = {}, ...children) {
  const node = DRAWN.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
function hint(node, text) {
  const tip = document.getElementById("tip");
  const show = event => {
    tip.textContent = text;
    tip.style.display = "block";
    tip.style.left = Math.max(4, Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, event.clientY - tip.offsetHeight - 10) + "px";
  };
  node.addEventListener("pointermove", show);
  node.addEventListener("pointerdown", show);
  node.addEventListener("pointerleave", () => { tip.style.display = "none"; });
  return node;
}
// Two digits, halves to even as in the tables: exact halves are x.125, x.375, x.625 and x.875.
function number(value) {
  if (value === null || value === undefined) return "";
  const eighths = Math.abs(value * 8) % 4;
  return (eighths === 1 ? value - Math.sign(value) / 1000 : eighths === 3 ? value + Math.sign(value) / 1000 : value).toFixed(2);
}
const spread = found => !found ? "" : number(found.mean) + (found.interval === null ? "" : " ± " + number(found.interval));
const capital = text => text[0].toUpperCase() + text.slice(1);
function section(title, ...children) { return element("section", {}, element("h2", {}, title), ...children); }
function pictures(...figures) { return element("div", {class: "pictures"}, ...figures); }
function quiet(text) { return element("p", {class: "quiet"}, text); }
// What is long is made when it is unfolded.
function folded(title, make) {
  const node = element("details", {class: "more"}, element("summary", {}, title));
  node.addEventListener("toggle", () => { if (node.open && node.childElementCount === 1) node.append(make()); });
  return node;
}
const ruler = document.createElement("canvas").getContext("2d");
function textWidth(text, size) {
  ruler.font = `${size}px system-ui, sans-serif`;
  return ruler.measureText(text).width;
}
function shortened(text, size, room) {
  if (textWidth(text, size) <= room) return text;
  let length = text.length;
  while (length > 1 && textWidth(text.slice(0, length) + "…", size) > room) length--;
  return text.slice(0, length) + "…";
}
// The pixels across that a picture has: those of its column, less the padding of the figure; on paper three stand side by side.
const PRINTED_WIDTH = 310;
let printing = false;
function pictureWidth() {
  if (printing) return PRINTED_WIDTH;
  const page = document.getElementById("panel").clientWidth, least = 448;
  const columns = Math.max(1, Math.floor((page + 16) / (least + 16)));
  return Math.max(240, Math.floor((page - 16 * (columns - 1)) / columns) - 20);
}
