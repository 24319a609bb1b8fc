/** The token that writes need, and the name that labels are signed with. Both are kept in this tab alone. */

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
  return sessionStorage.getItem(NAME) ?? "";
}

export function keepSignature(value) {
  if (value) sessionStorage.setItem(NAME, value);
  else sessionStorage.removeItem(NAME);
}
