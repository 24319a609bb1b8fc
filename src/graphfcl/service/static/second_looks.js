/** Second looks: among the questions of the queue, labels on which people disagree or which the model disputes. */

import { ServiceError } from "./api.js";
import { readIssues } from "./label_issues.js";

const EVERY = 5; // one question in so many, while there are any
const KEPT = 20; // labels that are kept ready
const PATIENCE = 5000; // milliseconds until disputes are asked for again while the first ones are computed

let issues = new Map(); // id → the label as it is now
const asked = new Map(); // the same for labels that were shown here: each is once, until the page is loaded again
let questions = 0; // since the last second look
let latest = 0;

/** Reads the labels that need a second look, then calls done(); again when the first disputes are computed. */
export async function loadSecondLooks(done) {
  latest += 1;
  const mine = latest;
  try {
    const answer = await readIssues(KEPT + asked.size);
    if (mine !== latest) return;
    issues = new Map(answer.issues.map((each) => [each.id, each]));
    if (answer.status === "computing" && answer.disputes_version === null) {
      setTimeout(() => mine === latest && loadSecondLooks(done), PATIENCE);
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (mine === latest) issues = new Map(); // nodes without a label are asked about all the same
  }
  done();
}

/** The label of a node if it needs a second look, or null. settled: also if it needed one before. */
export function issueOf(id, settled = false) {
  return issues.get(id) ?? (settled ? asked.get(id) : null) ?? null;
}

/** Counts a question that was asked, perhaps a second look. */
export function noteAsked(id) {
  questions += 1;
  if (issues.has(id)) asked.set(id, issues.get(id));
}

/** A label was kept: it needs no second look. */
export function noteKept(id) {
  asked.set(id, issues.get(id) ?? asked.get(id));
  issues.delete(id);
}

/** A label was not kept after all. */
export function forgetKept(id) {
  asked.delete(id);
}

/** The ids of the next labels to look at again, at most `count`; none unless one is due, or must be. */
export function nextSecondLooks(count, isFree, must) {
  if (questions < EVERY && !must) return [];
  const ids = [...issues.keys()].filter((id) => !asked.has(id) && isFree(id)).slice(0, count);
  if (ids.length > 0) questions = 0;
  return ids;
}
