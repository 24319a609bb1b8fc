/** The token that writes need, kept in this tab alone. */

export { keepSignature, signature } from "./signature.js";

const TOKEN = "graphfcl.token";

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
