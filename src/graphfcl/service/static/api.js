/** Requests to the service: versions, the token, and errors as sentences. */

import { token } from "./token.js";

const TRIES = 3;
const AT_ONCE = 100; // entries of a list in one request
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

/** Number of versions by others that the page has seen; a dialog opened before the last one is outdated. */
export function othersChanges() {
  return changesOfOthers;
}

/** Calls `heard(version, own)` when an answer has a later version; own: a write of this page is in progress. */
export function onVersion(listener) {
  listeners.version.push(listener);
}

/** Calls `ask()` when the token is missing or wrong; it resolves to true if the user entered another one. */
export function onTokenNeeded(ask) {
  listeners.token = ask;
}

export function read(path) {
  return request("GET", path);
}

/** The page of a list at a cursor, or null if the list has changed. cursor: null for the first page. */
export async function readPage(address, cursor) {
  if (cursor === null) return read(address);
  try {
    return await read(`${address}&cursor=${encodeURIComponent(cursor)}`);
  } catch (error) {
    if (error instanceof ServiceError && error.status === 422) return null;
    throw error;
  }
}

/** A list with its first `count` entries, read page by page. address: without `limit`. key: the field of the entries. */
export async function readEntries(address, key, count) {
  const size = `${address}?limit=${Math.min(count, AT_ONCE)}`;
  const list = await read(size);
  while (list[key].length < count && list.next_cursor !== null) {
    const page = await readPage(size, list.next_cursor);
    if (page === null) return readEntries(address, key, count);
    list[key].push(...page[key]);
    list.next_cursor = page.next_cursor;
  }
  return list;
}

/** A file of the service as a blob. */
export async function readFile(address) {
  const headers = token() ? { Authorization: `Bearer ${token()}` } : {};
  const answer = await fetch(address, { headers, cache: "no-store" }).catch(() => null);
  if (answer === null) throw new ServiceError(0, NO_ANSWER);
  if (!answer.ok) throw new ServiceError(answer.status, errorSentence(answer.status, contentOf(await answer.text())));
  return answer.blob();
}

/** Sends a request while the page is closing, without waiting for the answer. */
export function leave(path, body) {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token()}` };
  fetch(path, { method: "POST", headers, body: JSON.stringify(body), keepalive: true }).catch(() => undefined);
}

/** A POST without a key, sent once. quiet: a missing token is an error, and the page does not ask for one. signal: may abort it. */
export function ask(path, body, { quiet = false, signal } = {}) {
  return request("POST", path, { body, quiet, signal });
}

/** A change with its key, to be kept until it is known whether the service made it. */
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
 * The answer to a change whose answer was lost, or null if the service did not make it. The request is sent again for
 * version 0, which never exists: if the service made the change, it knows the key and repeats its answer; otherwise it
 * refuses the request.
 */
export async function lostAnswer(parcel) {
  try {
    return await writeFor(parcel, 0);
  } catch (error) {
    if (error.status === 412) return null;
    throw error;
  }
}

/** Whether the change may have been made in spite of an error: there was no answer, or a status from 500 on. */
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

/** A path from texts that may contain any character. */
export function path(...steps) {
  return `/v1/${steps.map((step) => encodeURIComponent(step)).join("/")}`;
}

function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function request(method, address, { body, key, match = null, quiet = false, signal } = {}) {
  let { answer, content } = await send(method, address, { body, key, match, signal });
  if (answer.status === 401 && !quiet && listeners.token !== null && (await listeners.token())) {
    ({ answer, content } = await send(method, address, { body, key, match, signal }));
  }
  if (!answer.ok) throw new ServiceError(answer.status, errorSentence(answer.status, content));
  noteVersion(content);
  return content;
}

/** Without an answer, a read and a write with a key are sent again; the key lets the service make the write once. */
async function send(method, address, { body, key, match, signal }) {
  const headers = { Accept: "application/json" };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  if (match !== null) headers["If-Match"] = `"${match}"`;
  const options = { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store", signal };
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

/** The page uses class names as texts: integer classes, which are sent as numbers, are converted here. */
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

/** Answers may arrive out of order, so only a later version counts. */
function noteVersion(content) {
  const newest = Number(content.version);
  if (!Number.isFinite(newest) || (version !== null && newest <= version)) return;
  const first = version === null;
  version = newest;
  if (first) return;
  if (writing === 0) changesOfOthers += 1;
  listeners.version.forEach((listener) => listener(newest, writing > 0));
}

/** Accepts any version, even an earlier one: the service may have been started with another folder. */
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
  if (status === 401) return SENTENCES[status]; // the detail is meant for programs
  if (typeof text === "string" && text) return text;
  return SENTENCES[status] ?? `The service answered with the error ${status}. Its log says more.`;
}
