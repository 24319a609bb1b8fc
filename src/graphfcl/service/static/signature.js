/** The name that is stored with labels. It is not secret, and the only thing that stays in the browser. */

const NAME = "graphfcl.name";

export function signature() {
  return localStorage.getItem(NAME) ?? "";
}

/** Whether the person was asked for a name and answered, perhaps with an empty one. */
export function wasAsked() {
  return localStorage.getItem(NAME) !== null;
}

export function keepSignature(value) {
  localStorage.setItem(NAME, value);
}
