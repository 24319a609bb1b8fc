/** The basket: nodes of one new class are collected, and a meter says whether they differ enough to teach it. */

import { ask, ServiceError } from "./api.js";
import { pendingNames, teach } from "./decisions.js";
import { meansNew } from "./dialogs.js";
import { button, byId, counted, element, fill, nodeButton } from "./dom.js";
import { classNames, on } from "./state.js";
import { caution, say } from "./status.js";

let nodes = [];
let latest = 0;
let wiring = { show: () => undefined, goOn: () => undefined };

export function startBasket(parts) {
  wiring = parts;
  byId("basket-form").addEventListener("submit", (event) => {
    event.preventDefault();
    teachBasket();
  });
  byId("basket-empty").addEventListener("click", () => empty());
  on("version", measure);
  draw();
  measure();
}

/** Puts a node in and goes on to the next. name: of the new class. */
export function collect(id, name = null) {
  if (name !== null) byId("basket-name").value = name;
  if (!nodes.includes(id)) nodes.push(id);
  say(`${id} is in the basket, ${counted(nodes.length, "node")} in all.`);
  draw();
  measure();
  wiring.goOn();
}

/** Puts several nodes in; note: a sentence to add to the report. */
export function collectAll(ids, note = "") {
  const fresh = ids.filter((id) => !nodes.includes(id));
  nodes = [...nodes, ...fresh];
  say(`${counted(fresh.length, "node")} put into the basket, ${counted(nodes.length, "node")} in all.${note}`);
  draw();
  measure();
}

function remove(id) {
  nodes = nodes.filter((each) => each !== id);
  draw();
  measure();
}

function empty() {
  nodes = [];
  byId("basket-name").value = "";
  draw();
  measure();
}

async function teachBasket() {
  const name = byId("basket-name").value.trim();
  if (nodes.length === 0) {
    caution("The basket is empty. Show a node and press b to put it in.");
    return;
  }
  if (!name) {
    caution("Give the class a name first.");
    byId("basket-name").focus();
    return;
  }
  if (!(await meansNew(name, [...classNames(), ...pendingNames()]))) return;
  const taught = nodes;
  empty();
  const fresh = !classNames().includes(name);
  await teach(taught.map((id) => ({ id, name, fresh, reason: "Collected in the basket" })));
}

/** Measures how much the nodes differ, from two nodes on. */
async function measure() {
  latest += 1;
  const mine = latest;
  if (nodes.length < 2) {
    const hint = nodes.length === 0 ? "Show a node and press b to collect it here." : "One more node, and their spread is measured.";
    drawMeter(null, hint, false);
    return;
  }
  try {
    const { spread, alike, say: words } = await ask("/v1/spread", { ids: nodes });
    if (mine === latest) drawMeter(spread, words, alike);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const words = error.status === 501 ? "This service does not measure how much nodes differ." : error.message;
    if (mine === latest) drawMeter(null, words, false);
  }
}

function drawMeter(spread, words, alike) {
  const place = byId("basket-meter");
  place.dataset.alike = String(alike);
  fill(
    place,
    spread !== null &&
      element("span", { class: "bar-track", "aria-hidden": "true" }, element("span", { class: "bar-fill", share: spread })),
    element("p", {}, alike && !words.includes("too alike") ? `These are too alike. ${words}` : words),
  );
}

function draw() {
  fill(
    byId("basket-nodes"),
    nodes.map((id) =>
      element("li", {}, nodeButton(id, wiring.show), button("×", () => remove(id), { class: "small", "aria-label": `Take ${id} out` })),
    ),
  );
  byId("basket-empty").hidden = nodes.length === 0;
  byId("basket-count").textContent = nodes.length === 0 ? "" : counted(nodes.length, "node");
}
