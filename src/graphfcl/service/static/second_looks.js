/** Second looks: among the questions of the queue, labels on which people disagree or which the model disputes. */

import { ServiceError } from "./api.js";
import { readIssues } from "./label_issues.js";

const EVERY = 5; // every fifth question, while there are any
const KEPT = 20; // labels to keep ready

let issues = [];
let questions = 0; // questions since the last second look
const asked = new Set(); // ids: each comes up once until the page is reloaded; the view "Review" lists all

/** Reads the labels that need a second look; if this fails, the queue goes on without them. */
export async function loadSecondLooks() {
  try {
    ({ issues } = await readIssues(KEPT));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    issues = [];
  }
}

/** Counts a question; returns the next second look if one is due, or null. now: one is due at once. */
export function nextSecondLook(isFree, now) {
  questions += 1;
  if (questions < EVERY && !now) return null;
  const issue = issues.find((each) => !asked.has(each.id) && isFree(each.id)) ?? null;
  if (issue === null) return null;
  questions = 0;
  asked.add(issue.id);
  return issue;
}
