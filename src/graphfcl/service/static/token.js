/** The token that writes need. It is kept only in this tab. */

export { keepSignature, signature } from "./signature.js";

const TOKEN = "graphfcl.token";

/** Removes `#token=...` from the address, so that it is neither bookmarked nor copied. */
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
