/** Labels that need a second look: people disagree on them, or the model disputes them. */

import { path, readEntries } from "./api.js";
import { change } from "./changes.js";
import { percent } from "./dom.js";
import { signed } from "./person.js";
import { timeText } from "./statements.js";

export const SETTLED = "review"; // a label with this reason ends a disagreement

/** The first `count` of them. */
export function readIssues(count) {
  return readEntries("/v1/label-issues", "issues", count);
}

export function issueText({ class: label, disagreement, dispute }) {
  const said = disagreement.map((each) => `${each.by} says ${each.label}${each.when ? ` (${timeText(each.when)})` : ""}`);
  const parts = [
    said.length > 0 && `People disagree: ${said.join(", ")}.`,
    dispute && `The model, trained without this label, is ${percent(dispute.confidence)} sure that it is not ${label}; it expects ${dispute.guess} (${percent(dispute.probability)}).`,
  ];
  return [`It is labelled ${label}.`, ...parts.filter(Boolean)].join(" ");
}

/** Classes that people or the model suggest instead of the label. */
export function otherNames({ class: label, disagreement, dispute }) {
  const named = [...disagreement.map((each) => each.label), ...(dispute ? [dispute.guess] : [])];
  return [...new Set(named)].filter((each) => each !== label);
}

/** Marks a label as reviewed; resolves to null if the change was refused. */
export async function keepLabel({ id, class: label }) {
  const body = { ids: [id], by: await signed() };
  return change("POST", path("labels", "review"), body, () => `${id} stays ${label}, and is not listed again.`);
}
