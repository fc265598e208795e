import { byId } from "./dom.js";
import { queryOf } from "./routes.js";

/** Sends the dashboard's requests to the node. The dashboard uses the public API only. */

const KEY = "fencepost-api-key";

class ApiProblem extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? `the node answered ${status}`);
    this.status = status;
    this.code = problem?.code ?? "UNKNOWN";
    this.problem = problem;
  }
}

class Unanswered extends Error {
  constructor() {
    super("the node does not answer");
    this.name = "TimeoutError";
  }
}

/** Timeout of a request. Needed because a frozen node process still accepts connections. */
const ANSWER_MS = 20_000;
const ACTION_MS = 30_000;

/**
 * Sends a request to a path under /api/v1. If the node requires an API key, the user is prompted for one and the
 * request is repeated.
 */
export async function callApi(path, { query = {}, method = "GET", body, headers = {}, signal, withinMs } = {}) {
  const text = queryOf(query);
  const url = `api/v1${path}${text === "" ? "" : `?${text}`}`;
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const request = {
      method,
      headers: { ...headersOf(key, body), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const answer = await within(withinMs ?? (method === "GET" ? ANSWER_MS : ACTION_MS), signal, (limit) =>
      reach(url, { ...request, signal: limit }),
    );
    if (answer.status !== 401) return read(answer);
    await askForKey(key);
  }
}

/** Sends a request and reads the whole response: received headers do not prove that the body follows. */
async function reach(url, options) {
  const response = await fetch(url, options);
  const { ok, status } = response;
  return { ok, status, body: await response.json().catch(() => null) };
}

/** Runs `work` with a signal that aborts after `ms`, or when `signal` aborts. */
async function within(ms, signal, work) {
  const limit = new AbortController();
  const leave = () => limit.abort(signal.reason);
  const timer = setTimeout(() => limit.abort(new Unanswered()), ms);
  if (signal?.aborted) leave();
  signal?.addEventListener("abort", leave);
  try {
    return await work(limit.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
}

export function hasKey() {
  return sessionStorage.getItem(KEY) !== null;
}

/** Deletes the stored API key, so that the next request prompts for another. */
export function forgetKey() {
  sessionStorage.removeItem(KEY);
}

function headersOf(key, body) {
  return {
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  };
}

function read({ ok, status, body }) {
  if (ok && body !== null) return body;
  throw new ApiProblem(status, body);
}

let asking = null;

/**
 * Prompts for an API key. Concurrent requests that got a 401 share one dialog. If another key was stored in the
 * meantime, no dialog opens, and the request is repeated with that key.
 */
function askForKey(refused) {
  if (sessionStorage.getItem(KEY) !== refused) return Promise.resolve();
  asking ??= openDialog(refused).finally(() => {
    asking = null;
  });
  return asking;
}

function openDialog(refused) {
  const dialog = byId("key-dialog");
  const input = byId("key-input");
  byId("key-error").textContent = refused === null ? "" : "This key is not known. Check it and try again.";
  input.value = "";
  return new Promise((resolve) => {
    const submit = () => {
      sessionStorage.setItem(KEY, input.value.trim());
      resolve();
    };
    byId("key-form").addEventListener("submit", submit, { once: true });
    // Keep the API key dialog open on Escape: without a key the page has nothing to show.
    dialog.oncancel = (event) => event.preventDefault();
    if (!dialog.open) dialog.showModal();
  });
}

/** Makes a UUID. `crypto.randomUUID` does not exist on pages served by plain http. */
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
