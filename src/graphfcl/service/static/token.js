/** The token that writes need, kept in this tab alone, and the name that labels are signed with, kept in the browser. */

const TOKEN = "graphfcl.token";
const NAME = "graphfcl.name";

/** Takes `#token=...` out of the address, so that it is neither bookmarked nor copied with it. */
export function takeTokenFromAddress() {
  const fromAddress = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!fromAddress) return;
  sessionStorage.setItem(TOKEN, fromAddress);
  history.replaceState(null, "", location.pathname);
}

export function token() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

export function keepToken(value) {
  if (value) sessionStorage.setItem(TOKEN, value);
  else sessionStorage.removeItem(TOKEN);
}

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
