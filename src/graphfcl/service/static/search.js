/** Search for nodes by their id or text. */

import { read } from "./api.js";
import { byId, element, fill, nodeButton, sentence } from "./dom.js";
import { tellError } from "./status.js";

const PAUSE = 200; // milliseconds without a key before the search starts
const LIMIT = 20;

let latest = 0;

export function startSearch(show) {
  const input = byId("search");
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => find(input.value.trim(), show), PAUSE);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close(input); // the focus then goes back to the question
  });
  byId("search-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(timer);
    const nodes = await find(input.value.trim(), show);
    if (nodes.length > 0) choose(nodes[0].id, show);
  });
}

function close(input) {
  input.value = "";
  fill(byId("search-results"));
  latest += 1;
}

function choose(id, show) {
  close(byId("search"));
  show(id);
  byId("card-name").focus();
}

async function find(text, show) {
  latest += 1;
  const mine = latest;
  if (!text) {
    fill(byId("search-results"));
    return [];
  }
  try {
    const { nodes } = await read(`/v1/nodes?q=${encodeURIComponent(text)}&limit=${LIMIT}`);
    if (mine === latest) draw(text, nodes, show);
    return nodes;
  } catch (error) {
    tellError(error);
    return [];
  }
}

function draw(text, nodes, show) {
  const rows = nodes.map((node) =>
    element(
      "li",
      {},
      nodeButton(node.id, (id) => choose(id, show)),
      element("span", { class: "hint" }, node.label === null ? "no label" : node.label),
      node.text && element("span", { class: "text" }, node.text),
    ),
  );
  fill(
    byId("search-results"),
    element("p", { class: "hint", role: "status" }, nodes.length === 0 ? `No node is called “${text}”.` : foundSentence(nodes)),
    element("ul", { class: "results", "aria-label": "Nodes found" }, rows),
    nodes.length === 0 && sentence("Search looks for parts of names; try fewer letters."),
  );
}

function foundSentence(nodes) {
  if (nodes.length === 1) return "One node is found; Enter shows it.";
  return `${nodes.length === LIMIT ? `The first ${LIMIT}` : nodes.length} nodes are found; Enter shows the first.`;
}
