/** Who is labelling: asked once, before the first change, and kept in this browser. */

import { actions, field, open, submit } from "./dialogs.js";
import { keepSignature, signature, wasAsked } from "./signature.js";

let asking = null;

/** Resolves to the name that is stored with labels, "" if the person gives none. */
export async function signed() {
  if (!wasAsked()) {
    asking ??= askOnce().finally(() => (asking = null));
    await asking;
  }
  return signature();
}

async function askOnce() {
  const name = await open("Who is labelling?", (close) => {
    const { input, row } = field("Your name", { maxlength: 100, autofocus: true }, "It is kept with your labels, so that others know whom to ask. This browser remembers it.");
    const keep = (event) => (event.preventDefault(), close(input.value.trim()));
    return [row, actions(submit("Go on", keep))];
  });
  keepSignature(name ?? "");
}
