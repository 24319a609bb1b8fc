/** What is known of a decision, a label that was given on this page, whatever the other decisions are. */

import { path, read } from "./api.js";
import { peopleText } from "./statements.js";

/**
 * {id, name, number: counts up, fresh: the user typed the name of a new class, before: label that the node had, or null,
 *  reason: why it was asked about, note, conflict: the label that someone else gave it, look: before is asked for when it
 *  is sent, again: it had another label before, state, trouble, parcel: the change that may have been made, as no answer
 *  came, back: the same of the change that takes it back}
 */
export function newDecision(label, number, look) {
  const empty = { fresh: false, before: null, again: false, reason: "", note: "", conflict: null };
  return { ...empty, ...label, number, look, parcel: null, back: null, state: "waiting", trouble: "" };
}

/** Whether the service is known not to have the label of a decision. */
export function unlearned(decision) {
  return decision.state === "waiting" || (decision.state === "failed" && decision.parcel === null);
}

export function replacing(decision) {
  return decision.before !== null || decision.again;
}

/** Labels as they are sent. */
export function asSent(batch) {
  return batch.map(({ id, name, reason, note }) => ({ id, class: name, reason, note }));
}

export function summary(batch) {
  const [first] = batch;
  return batch.length === 1 ? `${first.id} is ${first.name}` : `${batch.length} labels`;
}

/** A refused decision notes who gave its node another label; resolves to whether that is why. */
export async function noteConflict(decision) {
  try {
    const { label, statements } = await read(path("nodes", decision.id));
    if (label === null || label === decision.name) return false;
    const trouble = `${peopleText(statements ?? [])} labelled it ${label} before you said ${decision.name}`;
    Object.assign(decision, { state: "failed", before: label, conflict: label, trouble });
    return true;
  } catch {
    return false; // the refusal is shown as it came
  }
}

/** Those of a batch whose node got another label from someone else since its label was seen here. */
export async function relabelled(batch) {
  const found = [];
  for (const each of batch.filter((other) => replacing(other) && !other.again)) {
    const node = await read(path("nodes", each.id)).catch(() => null);
    if (node !== null && node.label !== each.before && (await noteConflict(each))) found.push(each);
  }
  return found;
}
