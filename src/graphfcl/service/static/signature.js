/** The name that labels are signed with. It is no secret, and is kept in the browser; nothing else is. */

const NAME = "graphfcl.name";

export function signature() {
  return localStorage.getItem(NAME) ?? "";
}

/** Whether the person said who they are; an empty name is an answer, too. */
export function wasAsked() {
  return localStorage.getItem(NAME) !== null;
}

export function keepSignature(value) {
  localStorage.setItem(NAME, value);
}
