/** Groups of similar nodes that look unknown. Naming a group teaches its ticked members as a class. */

import { currentVersion, path, read, ServiceError } from "./api.js";
import { change } from "./changes.js";
import { meansNew } from "./dialogs.js";
import { asSentence, bar, byId, counted, element, fill, nodeButton, percent, sentence } from "./dom.js";
import { signed } from "./person.js";
import { startRoving } from "./roving.js";
import { classNames, on } from "./state.js";

const PATIENCE = 2000; // milliseconds between requests while groups are computed
const NEIGHBOURS = 3;

let latest = 0;
let show = () => undefined;

export function startGroups(showNode) {
  show = showNode;
  byId("groups-again").addEventListener("click", () => loadGroups());
  on("version", () => {
    // Groups belong to a version: they can be named again when those of the new version are ready.
    for (const each of byId("groups").querySelectorAll("form button")) each.disabled = true;
    if (byId("groups").querySelector("article")) byId("groups-count").textContent = "being computed again …";
  });
  return loadGroups();
}

/** Reads groups until they are computed, and keeps what the user has typed. */
export async function loadGroups() {
  latest += 1;
  const mine = latest;
  for (;;) {
    let answer;
    try {
      answer = await read("/v1/groups");
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const words = error.status === 501 ? "This service does not look for groups." : error.message;
      if (mine === latest) fill(byId("groups"), sentence(words));
      return;
    }
    if (mine !== latest) return;
    if (answer.status === "ready") {
      draw(answer.groups, answer.version ?? currentVersion());
      return;
    }
    if (byId("groups").querySelector("article") === null) fill(byId("groups"), sentence("Groups are being computed …"));
    await new Promise((resolve) => setTimeout(resolve, PATIENCE));
    if (mine !== latest) return;
  }
}

function draw(groups, version) {
  const place = byId("groups");
  byId("groups-count").textContent = groups.length === 0 ? "" : counted(groups.length, "group");
  const typed = typedNames(place);
  if (groups.length === 0) fill(place, sentence("No tight group of unknown nodes is found."));
  else fill(place, groups.map((group) => article(group, version)));
  for (const input of place.querySelectorAll("input[data-node]")) {
    const draft = typed.get(input.dataset.node);
    if (draft === undefined) continue;
    input.value = draft.value;
    if (draft.focused) input.focus({ preventScroll: true });
  }
}

/** Typed names by the most typical node of each group, since another version may number its groups differently. */
function typedNames(place) {
  return new Map(
    [...place.querySelectorAll("input[data-node]")]
      .filter((input) => input.value !== "" || input === document.activeElement)
      .map((input) => [input.dataset.node, { value: input.value, focused: input === document.activeElement }]),
  );
}

function article(group, version) {
  const heading = `group-${group.number}`;
  const input = element("input", { id: `${heading}-name`, "data-node": group.typical[0], autocomplete: "off", maxlength: 200, required: true });
  const teach = element("button", { type: "submit", class: "primary" });
  const count = () => {
    const ticked = group.nodes.filter((id) => isTicked(group, id)).length;
    teach.textContent = `Teach ${counted(ticked, "node")}`;
    teach.disabled = ticked === 0;
  };
  count();
  const form = element(
    "form",
    { class: "inline" },
    element("label", { for: input.id }, "Name of the class of the ticked nodes"),
    element("span", { class: "field" }, input, teach),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value.trim()) name(group, input.value.trim(), version);
  });
  const others = group.nodes.filter((id) => !group.typical.includes(id));
  return element(
    "article",
    { "aria-labelledby": heading },
    element("h3", { id: heading }, group.words.length > 0 ? group.words.slice(0, 3).join(", ") : `Group ${group.number}`),
    element("p", { class: "hint" }, `${counted(group.size, "node")}; ${purityWords(group)}`),
    members(group, group.typical, "Typical nodes", count),
    details(group, others, count),
    form,
  );
}

/** What the estimated purity means in nodes. */
function purityWords({ size, estimated_purity: purity }) {
  const others = Math.round(size * (1 - purity));
  const meant = others === 0 ? "probably all of one class" : `about ${others} of them of another class`;
  return `estimated purity ${percent(purity)}, ${meant}`;
}

const ticks = new Map(); // id → whether the user ticked it; the typical nodes are ticked at first

function isTicked(group, id) {
  return ticks.get(id) ?? group.typical.includes(id);
}

/** Members with a checkbox each. changed(): called when one is ticked or unticked. */
function members(group, ids, label, changed) {
  const list = element(
    "ul",
    { class: "members", "aria-label": label },
    ids.map((id) => {
      const box = element("input", {
        type: "checkbox",
        "aria-label": `Teach ${id}`,
        on: { change: () => (ticks.set(id, box.checked), changed()) },
      });
      box.checked = isTicked(group, id);
      return element("li", {}, box, nodeButton(id, show));
    }),
  );
  startRoving(list);
  return list;
}

function details(group, others, changed) {
  return element(
    "details",
    {},
    element("summary", {}, others.length > 0 ? `${counted(others.length, "more member")}, words and neighbours` : "Words and neighbours"),
    element("p", {}, asSentence(group.why)),
    others.length > 0 && members(group, others, "Further members", changed),
    group.words.length > 0 &&
      element("ul", { class: "chips", "aria-label": "Words" }, group.words.map((word) => element("li", { class: "chip" }, word))),
    group.neighbours.length > 0 && element("p", { class: "hint" }, "Its nodes link to these classes:"),
    element("ul", { class: "bars" }, group.neighbours.slice(0, NEIGHBOURS).map(namedShare).map(([name, share]) => bar(name, share))),
  );
}

/** A class with its share, sent as a pair or as an object. */
function namedShare(entry) {
  return Array.isArray(entry) ? entry : [entry.name ?? entry.class, entry.share];
}

async function name(group, className, version) {
  if (!(await meansNew(className, classNames()))) return;
  const nodes = group.nodes.filter((id) => isTicked(group, id));
  const body = { name: className, nodes, by: await signed(), version, new_classes: [className] };
  await change("POST", path("groups", group.number, "name"), body, (_, seconds) => `The model learned “${className}” in ${seconds}.`);
}
