/** Changes of the model, one after the other, so that each starts from the version that the previous one wrote. */

import { ServiceError, carryOut, leavesOpen, lostAnswer, othersChanges, parcelOf, readAfresh } from "./api.js";
import { caution, say, tellError } from "./status.js";
import { emit, state } from "./state.js";

let last = Promise.resolve();

/** Runs a job when all jobs before it are done. */
export function inTurn(job) {
  const done = last.then(job);
  last = done.catch(() => undefined);
  return done;
}

/** Seconds since a moment of performance.now(), as text. */
export function secondsSince(begun) {
  return `${((performance.now() - begun) / 1000).toFixed(1)} s`;
}

/** Reads the current version and updates all panels. */
export async function reload() {
  state.model = await readAfresh("/v1/model");
  emit("version", { reloaded: true });
}

// Text of a change → {parcel, finish, answer}. No answer came, so the service may have made it.
const unanswered = new Map();
// Text of a change → its parcel. The service has not made it; if repeated, it is sent with the same key.
let refused = new Map();
const trackers = [{ isOpen: () => unanswered.size > 0, resolve: resolveChanges }];

/** isOpen(): whether answers were lost; resolve(): finds out about them, resolves to whether any change was made. */
export function trackOpen(tracker) {
  trackers.push(tracker);
}

/** Whether this page sent a change and does not know whether it was made. */
export function anyOpen() {
  return trackers.some((each) => each.isOpen());
}

/** Finds out whether changes with lost answers were made, to tell them from changes by others. */
export async function resolveOpen() {
  let made = false;
  for (const each of trackers) made = (await each.resolve()) || made;
  return made;
}

async function resolveChanges() {
  let made = false;
  for (const [what, open] of [...unanswered]) {
    open.answer = await lostAnswer(open.parcel);
    unanswered.delete(what);
    if (open.answer === null) refused.set(what, open.parcel);
    else open.finish(open.answer);
    made ||= open.answer !== null;
  }
  return made;
}

/**
 * Makes one change and reports the result; resolves to the answer, or to null if it is not known to be made.
 * done(answer, seconds): the sentence for the status line. after(answer): what to do next. A change without an answer
 * is finished when it is known to be made: when it is repeated, or before the next change. seen: othersChanges() when the
 * dialog opened; the change is refused like a 412 if someone else changed the model after that.
 */
export function change(method, address, body, done, { after = () => undefined, seen = othersChanges() } = {}) {
  const what = JSON.stringify([method, address, body ?? null]);
  return inTurn(async () => {
    const begun = performance.now();
    const finish = (answer) => {
      if (answer.warning) caution(answer.warning);
      else say(done(answer, secondsSince(begun)));
      after(answer);
    };
    try {
      const before = unanswered.get(what);
      await resolveOpen();
      if (before?.answer) return before.answer;
      if (seen !== othersChanges()) throw new ServiceError(412, "Someone else changed the model.");
      const answer = await sendOnce(what, refused.get(what) ?? parcelOf(method, address, body), finish);
      finish(answer);
      return answer;
    } catch (error) {
      if (error.status === 412) await tellStale("Nothing was changed: look again and repeat it if you still want it.");
      else tellError(error);
      return null;
    }
  });
}

async function sendOnce(what, parcel, finish) {
  try {
    const answer = await carryOut(parcel);
    refused = new Map(); // the model has changed: repeating them would be different changes
    return answer;
  } catch (error) {
    if (leavesOpen(error)) unanswered.set(what, { parcel, finish, answer: null });
    throw error;
  }
}

export async function tellStale(consequence) {
  try {
    await reload();
    caution(`Someone else changed the model. The page shows version ${state.model.version}. ${consequence}`);
  } catch (error) {
    tellError(error);
  }
}
