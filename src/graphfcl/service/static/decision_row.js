/** A row of the list of last decisions: node, class, whether the model has learned it, and actions. */

import { button, element, nodeButton } from "./dom.js";

const STATES = { waiting: "waiting", sending: "is being learned", learned: "learned", failed: "not learned" };

/** newest: no later decision is about the same node. acts: {show, tryAgain, keepTheirs, change, undo}. */
export function decisionRow(decision, newest, acts) {
  const { id, name, state, trouble } = decision;
  return element(
    "li",
    { "data-state": state },
    element("span", { class: "decision" }, nodeButton(id, acts.show), " is ", element("strong", {}, name)),
    state === "learned" && element("span", { class: "hint", "aria-hidden": "true" }, "✓"),
    element("span", { class: state === "learned" ? "unseen" : "hint" }, trouble || STATES[state]),
    newest ? actions(decision, acts) : element("span", { class: "hint" }, "labelled again later"),
  );
}

function actions(decision, { tryAgain, keepTheirs, change, undo }) {
  if (decision.state === "failed" && decision.conflict !== null) {
    return element(
      "span",
      { class: "row-actions" },
      button(`Keep ${decision.conflict}`, () => keepTheirs(decision)),
      button(`Replace by ${decision.name}`, () => tryAgain(decision)),
    );
  }
  return element(
    "span",
    { class: "row-actions" },
    decision.state === "failed" && button("Try again", () => tryAgain(decision)),
    button("Change", () => change(decision), { "aria-label": `Change the label of ${decision.id}` }),
    button("Undo", () => undo(decision), { "aria-label": `Undo the label of ${decision.id}` }),
  );
}
