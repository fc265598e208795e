import { byId } from "./dom.js";
import { queryOf } from "./routes.js";

/** The dashboard uses the public API only. */

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

/** Timeout of a request: a frozen process still accepts connections. */
const ANSWER_MS = 20_000;
const ACTION_MS = 30_000;

/** Sends a request under /api/v1. Asks the user for a key if the node requires one, then repeats the request. */
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

/** Reads the whole answer: headers do not prove that a body follows. */
async function reach(url, options) {
  const response = await fetch(url, options);
  const { ok, status } = response;
  return { ok, status, body: await response.json().catch(() => null) };
}

/** Runs `work` with a signal that aborts after `ms`, or when `signal` does. */
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

/** Forgets the key: the next request asks for another. */
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

/** Requests with a 401 at the same time share one dialog. A key that changed meanwhile is tried first. */
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
    // The dialog stays open on Escape: without a key there is nothing to show.
    dialog.oncancel = (event) => event.preventDefault();
    if (!dialog.open) dialog.showModal();
  });
}

/** A UUID without `crypto.randomUUID`, which plain http lacks. */
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
