/** Changes of the model, one after the other, so that each is made on the version that the one before left. */

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

/** Asks which version there is and lets all panels show it. */
export async function reload() {
  state.model = await readAfresh("/v1/model");
  emit("version", { reloaded: true });
}

// What a change does, as text → {parcel, finish, answer}: no answer came, so the service may have made it.
const unanswered = new Map();
// The same → its parcel: the service had not made it when it was asked. Repeated, it goes with the same key.
let refused = new Map();
const trackers = [{ isOpen: () => unanswered.size > 0, resolve: resolveChanges }];

/** isOpen(): whether it waits for answers that were lost; resolve(): finds out, resolves to whether any change was made. */
export function trackOpen(tracker) {
  trackers.push(tracker);
}

/** Whether this page sent a change of which it does not know if it was made. */
export function anyOpen() {
  return trackers.some((each) => each.isOpen());
}

/** Finds out what became of changes whose answers were lost, so that the page knows its own ones from those of others. */
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
 * Makes one change and says what came of it; resolves to the answer, or to null where nothing is known to be done.
 * done(answer, seconds): the sentence for the status line. after(answer): what else follows. A change that got no answer
 * is finished when it is known that it was made: when it is repeated, or before the next one. seen: othersChanges() when
 * the user was asked; the change is refused like a 412 if someone else changed the model after that.
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
    refused = new Map(); // the model moved on: the same change would be another one
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
