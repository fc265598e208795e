import { byId } from "./dom.js";
import { queryOf } from "./routes.js";

/** The page uses the public API and nothing else. */

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

/** A request without an answer by then counts as unanswered: a frozen process still accepts connections. */
const ANSWER_MS = 20_000;
const ACTION_MS = 30_000;

/** A request under /api/v1. Asks for a key where the node wants one, and then goes on as if nothing had been. */
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

/** The whole answer: headers that arrive prove nothing about the body behind them. */
async function reach(url, options) {
  const response = await fetch(url, options);
  const { ok, status } = response;
  return { ok, status, body: await response.json().catch(() => null) };
}

/** `work` with a signal that ends it after `ms`, or when `signal` does. By a timer of this page: a silent node has none. */
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

/** The next request asks for another one. */
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

/** Several requests may meet the 401 at once: they share one dialog. A key that changed meanwhile is tried first. */
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
    // Without a key there is nothing to show: Escape must not lead past this dialog.
    dialog.oncancel = (event) => event.preventDefault();
    if (!dialog.open) dialog.showModal();
  });
}

/** `crypto.randomUUID` exists on secure origins only; a dashboard on plain http is not one. */
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
