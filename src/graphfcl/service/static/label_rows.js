/** Rows of labels: class, role, who gave them, when and why, with buttons to change or remove them. */

import { othersChanges, path } from "./api.js";
import { change } from "./changes.js";
import { chooseClass } from "./class_choice.js";
import { teach } from "./decisions.js";
import { confirmed } from "./dialogs.js";
import { button, element, nodeButton } from "./dom.js";
import { classNames } from "./state.js";
import { statementText } from "./statements.js";

const ROLES = { train: "from the fit", validation: "from the fit, measures recall", support: "taught", accepted: "accepted" };

/** label: an entry of /v1/labels. more: further buttons. reason: stored with the new label if it is changed. */
export function labelRow(label, show, more = [], reason = "") {
  const { id, role, statements } = label;
  return element(
    "li",
    { "data-node": id },
    nodeButton(id, show),
    element("span", { class: "hint" }, ROLES[role] ?? role, statements.map((each) => ` · ${statementText(each)}`)),
    element("span", { class: "row-actions" }, more, changeButton(label, reason), removeButton(label)),
  );
}

function changeButton(label, reason) {
  return button("Change", () => changeLabel(label, reason), { class: "small", "aria-label": `Change the label of ${label.id}` });
}

function removeButton(label) {
  return button("Remove", () => removeLabel(label), { class: "small", "aria-label": `Remove the label of ${label.id}` });
}

async function changeLabel({ id, role, class: current }, reason) {
  const name = await chooseClass(`Which class is ${id}?`, classNames().filter((each) => each !== current));
  if (name === null) return;
  // An undo removes the label: otherwise an accepted prediction would come back as a taught label.
  await teach([role === "accepted" ? { id, name, reason, again: true } : { id, name, reason, before: current }]);
}

async function removeLabel({ id, class: current }) {
  const seen = othersChanges();
  if (!(await confirmed(`Remove the label of ${id}?`, `It is not labelled ${current} any more.`, "Remove"))) return;
  await change("DELETE", path("labels"), { ids: [id] }, (_, seconds) => `The label of ${id} was removed in ${seconds}.`, { seen });
}
