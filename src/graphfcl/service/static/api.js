/** Requests to the service: versions, the token, and errors as sentences. */

import { token } from "./token.js";

const TRIES = 3;
const NO_ANSWER = "The service does not answer. Check that it is running, then try again.";
const CLASS_FIELDS = ["name", "label", "predicted", "class", "guess", "before", "after"];

/** An answer that is not a success. `message` is one sentence to show; `status` is 0 where no answer came. */
export class ServiceError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const listeners = { version: [], token: null };
let version = null;
let writing = 0;
let changesOfOthers = 0;

/** The version of the model that the last answer came from. */
export function currentVersion() {
  return version;
}

/** How many versions of others the page has seen: a dialog that was opened before the last one no longer holds. */
export function othersChanges() {
  return changesOfOthers;
}

/** `heard(version, own)` is called when an answer comes from a later version; own: a write of this page is under way. */
export function onVersion(listener) {
  listeners.version.push(listener);
}

/** `ask()` is called when a token is missing or wrong; it resolves to true if another one was given. */
export function onTokenNeeded(ask) {
  listeners.token = ask;
}

export function read(path) {
  return request("GET", path);
}

/** The page of a list at a cursor, or null if the list is another one by now. cursor: null for the first page. */
export async function readPage(address, cursor) {
  if (cursor === null) return read(address);
  try {
    return await read(`${address}&cursor=${encodeURIComponent(cursor)}`);
  } catch (error) {
    if (error instanceof ServiceError && error.status === 422) return null;
    throw error;
  }
}

/** A file of the service as a blob. */
export async function readFile(address) {
  const headers = token() ? { Authorization: `Bearer ${token()}` } : {};
  const answer = await fetch(address, { headers, cache: "no-store" }).catch(() => null);
  if (answer === null) throw new ServiceError(0, NO_ANSWER);
  if (!answer.ok) throw new ServiceError(answer.status, errorSentence(answer.status, contentOf(await answer.text())));
  return answer.blob();
}

/** A last request of a page that is being closed, which cannot wait for the answer. */
export function leave(path, body) {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token()}` };
  fetch(path, { method: "POST", headers, body: JSON.stringify(body), keepalive: true }).catch(() => undefined);
}

/** A request that asks but needs a body. quiet: a missing token is an error, and the page does not ask for one. */
export function ask(path, body, { quiet = false } = {}) {
  return request("POST", path, { body, quiet });
}

/** A change with its key, to be kept for as long as it is not known whether the service made it. */
export function parcelOf(method, address, body) {
  return { method, address, body, key: randomKey() };
}

/**
 * Makes a change. The request carries the version that the page shows (412 if the model has another one) and the key,
 * which lets the service see a repeated request.
 */
export function carryOut(parcel) {
  return writeFor(parcel, version);
}

/**
 * The answer to a change that got none, or null if the service did not make it. The request is sent once more, for a
 * version that there never is: the service knows the key of a change that it made and repeats its answer, any other is
 * refused.
 */
export async function lostAnswer(parcel) {
  try {
    return await writeFor(parcel, 0);
  } catch (error) {
    if (error.status === 412) return null;
    throw error;
  }
}

/** Whether an error leaves open if a change was made: no answer came, or one that the service need not have given. */
export function leavesOpen(error) {
  return error.status === 0 || error.status >= 500;
}

async function writeFor({ method, address, body, key }, match) {
  writing += 1;
  try {
    return await request(method, address, { body, key, match });
  } finally {
    writing -= 1;
  }
}

/** A path from texts that may hold any character. */
export function path(...steps) {
  return `/v1/${steps.map((step) => encodeURIComponent(step)).join("/")}`;
}

function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function request(method, address, { body, key, match = null, quiet = false } = {}) {
  let { answer, content } = await send(method, address, { body, key, match });
  if (answer.status === 401 && !quiet && listeners.token !== null && (await listeners.token())) {
    ({ answer, content } = await send(method, address, { body, key, match }));
  }
  if (!answer.ok) throw new ServiceError(answer.status, errorSentence(answer.status, content));
  noteVersion(content);
  return content;
}

/** A write that got no answer is sent again with the same key: the service does it once. */
async function send(method, address, { body, key, match }) {
  const headers = { Accept: "application/json" };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  if (match !== null) headers["If-Match"] = `"${match}"`;
  const options = { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store" };
  for (let tried = 1; ; tried += 1) {
    try {
      const answer = await fetch(address, options);
      return { answer, content: contentOf(await answer.text()) };
    } catch {
      if (tried === TRIES || (method !== "GET" && !key)) {
        throw new ServiceError(0, NO_ANSWER);
      }
      await new Promise((resolve) => setTimeout(resolve, 400 * tried));
    }
  }
}

/** The page knows classes by their names: integer classes, which travel as numbers, become texts here. */
function asName(key, value) {
  return typeof value === "number" && CLASS_FIELDS.includes(key) ? String(value) : value;
}

function contentOf(text) {
  try {
    return text ? JSON.parse(text, asName) : {};
  } catch {
    return {};
  }
}

/** Answers may overtake each other, so only a later version counts. */
function noteVersion(content) {
  const newest = Number(content.version);
  if (!Number.isFinite(newest) || (version !== null && newest <= version)) return;
  const first = version === null;
  version = newest;
  if (first) return;
  if (writing === 0) changesOfOthers += 1;
  listeners.version.forEach((listener) => listener(newest, writing > 0));
}

/** Takes whatever version the service has, also an earlier one: another folder may be served at the same address. */
export async function readAfresh(address) {
  version = null;
  return read(address);
}

const SENTENCES = {
  401: "A token is needed. Press “Token” and enter the one that the service was started with.",
  403: "The service refused this request. Open the page at the address that the service printed.",
  404: "The service does not have this.",
  412: "Someone else changed the model.",
  413: "That was too much at once.",
  501: "This service does not offer it.",
  503: "The service is not ready. It will be tried again.",
};

function errorSentence(status, problem) {
  const text = problem.detail ?? problem.title;
  if (status === 401) return SENTENCES[status]; // the service speaks to programs there
  if (typeof text === "string" && text) return text;
  return SENTENCES[status] ?? `The service answered with the error ${status}. Its log says more.`;
}
