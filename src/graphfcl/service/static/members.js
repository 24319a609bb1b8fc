/** The view of one class: its predicted members by doubt, accepting the most probable ones, and its labels. */

import { path, read, readPage, ServiceError } from "./api.js";
import { change } from "./changes.js";
import { chooseClass } from "./class_choice.js";
import { teach } from "./decisions.js";
import { asSentence, button, byId, counted, element, fill, nodeButton, percent, sentence } from "./dom.js";
import { labelRow } from "./label_rows.js";
import { signed } from "./person.js";
import { classNames, on } from "./state.js";
import { tellError } from "./status.js";
import { currentView, onView, openView } from "./views.js";

const PAGE = 25;
const MOST = 1000; // entries that are reloaded at once
const USUAL = 0.95; // the default threshold

let name = null; // the class that is shown
let members = null; // answer of /v1/classes/{name}/members, with the members of all pages that were opened
let labels = null; // the same of /v1/labels
let threshold = USUAL;
let leftOut = new Set(); // members that were unticked
let accepted = null; // {version, count}: what was accepted last
let latest = 0;
let show = () => undefined;

export function startMembers(showNode) {
  show = (id) => {
    openView("node");
    showNode(id);
  };
  onView("class", load);
  on("version", () => currentView() === "class" && load());
}

/** Shows a class, and moves the focus there. */
export async function openClass(wanted) {
  take(wanted);
  openView("class");
  byId("tab-class").focus();
}

function take(wanted) {
  if (wanted !== name) [members, labels, leftOut, accepted, threshold] = [null, null, new Set(), null, USUAL];
  name = wanted;
}

/** Reads members and labels again, as many as are shown. */
async function load() {
  latest += 1;
  const mine = latest;
  if (!classNames().includes(name)) take(classNames()[0] ?? null);
  if (name === null) return;
  const shown = (list) => Math.min(MOST, Math.max(PAGE, Math.ceil((list?.length ?? 0) / PAGE) * PAGE));
  try {
    const [first, second] = await Promise.all([
      read(`${path("classes", name, "members")}?limit=${shown(members?.members)}`),
      read(`/v1/labels?class=${encodeURIComponent(name)}&limit=${shown(labels?.labels)}`),
    ]);
    if (mine !== latest) return;
    [members, labels] = [first, second];
    draw();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (mine === latest) fill(byId("view-class"), panel("members-heading", "Class", sentence(asSentence(error.message))));
  }
}

async function more(list, address, key) {
  latest += 1;
  const mine = latest;
  try {
    const page = await readPage(address, list.next_cursor);
    if (mine !== latest) return;
    if (page === null) {
      await load();
      return;
    }
    Object.assign(list, page, { [key]: [...list[key], ...page[key]] });
    draw();
  } catch (error) {
    tellError(error);
  }
}

function moreMembers() {
  return more(members, `${path("classes", name, "members")}?limit=${PAGE}`, "members");
}

function moreLabels() {
  return more(labels, `/v1/labels?class=${encodeURIComponent(name)}&limit=${PAGE}`, "labels");
}

function panel(heading, title, ...children) {
  return element("section", { class: "panel", "aria-labelledby": heading }, element("div", { class: "panel-head" }, element("h2", { id: heading }, title)), children);
}

/** Draws the view; the focus stays on the same control. */
function draw() {
  const held = document.activeElement?.id;
  const choose = button("Another class", chooseAnother, { class: "quiet", id: "members-class" });
  const membersPanel = panel("members-heading", `Predicted as ${name}`, memberContent());
  membersPanel.querySelector(".panel-head").append(choose);
  fill(byId("view-class"), membersPanel, panel("class-labels-heading", `Labels of ${name}`, labelContent()));
  if (held && byId("view-class").contains(byId(held))) byId(held).focus({ preventScroll: true });
}

async function chooseAnother() {
  const wanted = await chooseClass("Which class?", classNames());
  if (wanted === null) return;
  take(wanted);
  load();
}

function memberContent() {
  const { total, members: listed } = members;
  if (total === 0) return [sentence("No node without a label is predicted as this class."), takeBackButton()];
  return [
    sentence(`${counted(total, "node")} without a label, the most doubtful first.`),
    acceptForm(),
    takeBackButton(),
    element("ul", { class: "rows", id: "members", "aria-label": `Nodes predicted as ${name}` }, listed.map(memberRow)),
    members.next_cursor !== null && button("Show more", moreMembers, { class: "quiet", id: "members-more" }),
  ];
}

function memberRow({ id, probability, second }) {
  const words = second === null ? certainty(probability) : `${certainty(probability)}; next ${second.name} ${percent(second.probability)}`;
  const box = element("input", { type: "checkbox", id: `tick-${id}`, "aria-label": `Accept ${id}`, on: { change: () => tick(id, box.checked) } });
  box.checked = !leftOut.has(id);
  return element(
    "li",
    { "data-node": id },
    probability >= threshold && box,
    nodeButton(id, show),
    element("span", { class: "hint" }, words),
    element(
      "span",
      { class: "row-actions" },
      button("Confirm", () => teach([{ id, name, reason: `predicted as ${name}` }]), { class: "small", "aria-label": `Confirm that ${id} is ${name}` }),
      button("Change", () => correct(id), { class: "small", "aria-label": `Change the class of ${id}` }),
    ),
  );
}

/** Never "100 %". */
function certainty(probability) {
  return probability > 0.99 ? "over 99 %" : percent(probability);
}

function tick(id, wanted) {
  if (wanted) leftOut.delete(id);
  else leftOut.add(id);
  draw();
}

async function correct(id) {
  const other = await chooseClass(`Which class is ${id}?`, classNames().filter((each) => each !== name));
  if (other !== null) await teach([{ id, name: other, reason: `predicted as ${name}` }]);
}

/** Thresholds with the number of nodes that they accept, and the expected errors among them. */
function acceptForm() {
  const choices = members.choices.filter(({ nodes }, place, all) => nodes > 0 && nodes !== all[place - 1]?.nodes);
  if (choices.length === 0) return sentence("No prediction is probable enough to be accepted.");
  const chosen = choices.find((each) => each.threshold === threshold) ?? choices.findLast((each) => each.threshold >= threshold) ?? choices[0];
  threshold = chosen.threshold;
  const select = element(
    "select",
    { id: "accept-threshold", on: { change: () => ((threshold = Number(select.value)), draw()) } },
    choices.map((each) => element("option", { value: each.threshold, selected: each === chosen }, `${percent(each.threshold)} or more: ${counted(each.nodes, "node")}`)),
  );
  const left = members.members.filter((each) => leftOut.has(each.id) && each.probability >= threshold).length;
  const count = chosen.nodes - left;
  const form = element(
    "form",
    { class: "inline" },
    element("label", { for: select.id }, "Accept predictions with a probability of"),
    element("span", { class: "field" }, select, element("button", { type: "submit", class: "primary", id: "accept", disabled: count === 0 }, `Accept ${counted(count, "node")}`)),
    sentence(`Expected among them: ${errorsText(chosen.expected_errors)}${left > 0 ? `, with the ${left} that you unticked` : ""}, and more if they are of a class without a name yet.`, "text"),
    sentence("Accepted nodes leave the queue. The model does not learn from them, so no answer changes."),
  );
  form.addEventListener("submit", (event) => (event.preventDefault(), accept()));
  return form;
}

function errorsText({ mean, low, high }) {
  return `${mean < 0.1 ? "fewer than 0.1" : `about ${mean.toFixed(1)}`} wrong (${low}–${high})`;
}

async function accept() {
  const body = { version: members.version, threshold, leave_out: members.members.map((each) => each.id).filter((id) => leftOut.has(id)), by: await signed() };
  const words = ({ accepted: count, expected_errors: errors }, seconds) =>
    `${counted(count, "prediction")} accepted as ${name} in ${seconds}; ${errorsText(errors)}.`;
  const after = (answer) => {
    accepted = { version: answer.version, count: answer.accepted };
  };
  await change("POST", path("classes", name, "accept"), body, words, { after });
  load();
}

/** A button that undoes the last acceptance, as long as nothing else has changed. */
function takeBackButton() {
  if (accepted === null || accepted.version !== members.version) return null;
  const { version, count } = accepted;
  const words = (_, seconds) => `${counted(count, "accepted prediction")} taken back in ${seconds}.`;
  return button(`Take back the ${counted(count, "node")} accepted`, () => change("POST", path("versions", version - 1, "rollback"), undefined, words), { id: "accept-back" });
}

function labelContent() {
  const { labels: listed, total, next_cursor: next } = labels;
  if (total === 0) return sentence("It has no label.");
  return [
    sentence(counted(total, "label")),
    element("ul", { class: "rows", id: "class-labels", "aria-label": `Labels of ${name}` }, listed.map((each) => labelRow(each, show))),
    next !== null && button("Show more", moreLabels, { class: "quiet", id: "labels-more" }),
  ];
}
