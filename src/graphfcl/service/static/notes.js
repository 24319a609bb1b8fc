/** Notes on nodes. A note waits until the node is labelled, and is stored with the label. */

import { askName } from "./dialogs.js";
import { emit, loadedCard } from "./state.js";

const waiting = new Map(); // id → text

export function noteOf(id) {
  return waiting.get(id) ?? "";
}

/** Takes the note of a node that is being labelled. */
export function takeNote(id) {
  const note = noteOf(id);
  waiting.delete(id);
  return note;
}

export async function writeNote() {
  const card = loadedCard();
  if (card === null) return;
  const hint = `It is kept with the label that you give ${card.id} next.`;
  const entered = await askName("A note", { label: "Note", value: noteOf(card.id), hint, longest: 1000, choices: [["take", "Keep"]] });
  if (entered === null) return;
  waiting.set(card.id, entered.name);
  emit("classes"); // the question is drawn again
}
