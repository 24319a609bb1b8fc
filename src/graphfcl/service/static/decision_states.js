/** The state of a single decision, which is a label that was given on this page. */

import { path, read } from "./api.js";
import { peopleText } from "./statements.js";

/**
 * {id, name, number: counts up, fresh: the user typed the name of a new class, before: label that the node had, or null,
 *  reason: why it was suggested, note, conflict: the label that someone else gave it, look: `before` is read when it is
 *  sent, again: it had another label before, state, trouble, parcel: the change, if it may have been made although no
 *  answer came, back: the same for the change that undoes it}
 */
export function newDecision(label, number, look) {
  const empty = { fresh: false, before: null, again: false, reason: "", note: "", conflict: null };
  return { ...empty, ...label, number, look, parcel: null, back: null, state: "waiting", trouble: "" };
}

/** Whether the service certainly does not have the label of a decision. */
export function unlearned(decision) {
  return decision.state === "waiting" || (decision.state === "failed" && decision.parcel === null);
}

export function replacing(decision) {
  return decision.before !== null || decision.again;
}

/** Labels in the form of a request. */
export function asSent(batch) {
  return batch.map(({ id, name, reason, note }) => ({ id, class: name, reason, note }));
}

export function summary(batch) {
  const [first] = batch;
  return batch.length === 1 ? `${first.id} is ${first.name}` : `${batch.length} labels`;
}

/** Notes in a refused decision who gave its node another label; resolves to whether this was the reason. */
export async function noteConflict(decision) {
  try {
    const { label, statements } = await read(path("nodes", decision.id));
    if (label === null || label === decision.name) return false;
    const trouble = `${peopleText(statements ?? [])} labelled it ${label} before you said ${decision.name}`;
    Object.assign(decision, { state: "failed", before: label, conflict: label, trouble });
    return true;
  } catch {
    return false; // the refusal itself is shown
  }
}

/** The decisions of a batch whose node got another label from someone else since the page read it. */
export async function relabelled(batch) {
  const found = [];
  for (const each of batch.filter((other) => replacing(other) && !other.again)) {
    const node = await read(path("nodes", each.id)).catch(() => null);
    if (node !== null && node.label !== each.before && (await noteConflict(each))) found.push(each);
  }
  return found;
}
