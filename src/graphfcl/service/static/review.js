/** The view for review: labels on which people disagree, and labels that the model disputes. */

import { ServiceError } from "./api.js";
import { teach } from "./decisions.js";
import { asSentence, button, byId, counted, element, fill, sentence } from "./dom.js";
import { issueText, keepLabel, otherNames, readIssues, SETTLED } from "./label_issues.js";
import { labelRow } from "./label_rows.js";
import { on } from "./state.js";
import { currentView, onView, openView } from "./views.js";

const PAGE = 25;
const PATIENCE = 3000; // milliseconds between requests while disputes are computed

let shown = PAGE;
let latest = 0;
let show = () => undefined;

export function startReview(showNode) {
  show = (id) => {
    openView("node");
    showNode(id);
  };
  onView("review", load);
  on("version", () => currentView() === "review" && load());
}

/** Reads the labels, repeatedly while disputes are computed and the view is open. */
async function load() {
  latest += 1;
  const mine = latest;
  for (;;) {
    try {
      const answer = await readIssues(shown);
      if (mine !== latest) return;
      draw(answer);
      if (answer.status === "ready" || answer.disputes_version !== null) return;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (mine === latest) fill(byId("view-review"), panel(sentence(asSentence(error.message))));
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, PATIENCE));
    if (mine !== latest || currentView() !== "review") return;
  }
}

function panel(...children) {
  const head = element("div", { class: "panel-head" }, element("h2", { id: "review-heading" }, "Labels to review"), button("Look again", load, { class: "quiet", id: "review-again" }));
  return element("section", { class: "panel", "aria-labelledby": "review-heading" }, head, children);
}

/** Draws the view; the focus stays on the same row if possible. */
function draw({ issues, total, status, disputes_version: version, why }) {
  const view = byId("view-review");
  const held = document.activeElement;
  const place = view.contains(held) ? [...view.querySelectorAll("li[data-node]")].indexOf(held.closest("li[data-node]")) : -1;
  const last = held?.id;
  fill(
    view,
    panel(
      why !== null && sentence(asSentence(why)),
      why === null && status === "computing" && sentence(version === null ? "The model looks for labels that it disputes. This takes as long as a few fits …" : `Disputes are those of version ${version}.`),
      total === 0 ? sentence(status === "ready" ? "No label needs a second look." : "No label to review so far.") : sentence(`${counted(total, "label")} to review.`),
      element("ul", { class: "rows", id: "review", "aria-label": "Labels to review" }, issues.map(row)),
      issues.length < total && button("Show more", () => ((shown += PAGE), load()), { class: "quiet", id: "review-more" }),
    ),
  );
  const rows = view.querySelectorAll("li[data-node]");
  if (place >= 0) (rows[Math.min(place, rows.length - 1)]?.querySelector("button") ?? byId("review-again")).focus({ preventScroll: true });
  else if (last && view.contains(byId(last))) byId(last).focus({ preventScroll: true });
}

function row(issue) {
  const { id, class: label } = issue;
  const made = labelRow(issue, show, [
    button("Keep", () => keepLabel(issue), { class: "small", "aria-label": `Keep ${id} as ${label}` }),
    otherNames(issue).map((name) => button(`Is ${name}`, () => teach([{ id, name, before: label, reason: SETTLED }]), { class: "small", "aria-label": `Is ${name}: change the label of ${id}` })),
  ], SETTLED);
  made.lastElementChild.before(sentence(issueText(issue), "text"));
  return made;
}
