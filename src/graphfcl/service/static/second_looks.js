/** Second looks: among the questions of the queue, labels on which people disagree or which the model disputes. */

import { ServiceError } from "./api.js";
import { readIssues } from "./label_issues.js";

const EVERY = 5; // one question in so many, while there are any
const KEPT = 20; // labels that are kept ready

let issues = [];
let questions = 0; // asked since the last second look
const asked = new Set(); // ids: each is asked about once, until the page is loaded again; the view "Review" lists all

/** Reads the labels that need a second look; without them the queue has nodes without a label only. */
export async function loadSecondLooks() {
  try {
    ({ issues } = await readIssues(KEPT));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    issues = [];
  }
}

/** Counts a question; the next label to look at again if it is due, or null. now: whether there is no other question. */
export function nextSecondLook(isFree, now) {
  questions += 1;
  if (questions < EVERY && !now) return null;
  const issue = issues.find((each) => !asked.has(each.id) && isFree(each.id)) ?? null;
  if (issue === null) return null;
  questions = 0;
  asked.add(issue.id);
  return issue;
}
