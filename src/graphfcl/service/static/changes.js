/** Changes of the model, one after the other, so that each is made on the version that the one before left. */

import { readAfresh, write } from "./api.js";
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

/**
 * Makes one change and says what came of it; resolves to the answer, or to null where nothing was done.
 * done(answer, seconds): the sentence for the status line.
 */
export function change(method, address, body, done) {
  return inTurn(async () => {
    const begun = performance.now();
    try {
      const answer = await write(method, address, body);
      if (answer.warning) caution(answer.warning);
      else say(done(answer, secondsSince(begun)));
      return answer;
    } catch (error) {
      if (error.status === 412) await tellStale("Nothing was changed: look again and repeat it if you still want it.");
      else tellError(error);
      return null;
    }
  });
}

export async function tellStale(consequence) {
  try {
    await reload();
    caution(`Someone else changed the model. The page shows version ${state.model.version}. ${consequence}`);
  } catch (error) {
    tellError(error);
  }
}
