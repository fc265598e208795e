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

/** When the node last answered anything, and since when it does not; `since` is null while it does. */
const connection = { answeredAt: null, since: null };

/** Answers are held for twenty seconds: none for longer than this, and nobody knows. */
const SILENT_MS = 40_000;

/** Since when nobody has confirmed what is shown, as a time; null while it is current. */
export function staleSince(now = Date.now()) {
  const { answeredAt, since } = connection;
  if (answeredAt === null) return null;
  return since !== null || now - answeredAt > SILENT_MS ? new Date(answeredAt).toISOString() : null;
}

/** A request under /api/v1. Asks for a key where the node wants one, and then goes on as if nothing had been. */
export async function callApi(path, { query = {}, method = "GET", body, headers = {}, signal } = {}) {
  const text = queryOf(query);
  const url = `api/v1${path}${text === "" ? "" : `?${text}`}`;
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const response = await reach(url, {
      method,
      headers: { ...headersOf(key, body), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    if (response.status !== 401) return read(response);
    await askForKey(key);
  }
}

async function reach(url, options) {
  try {
    const response = await fetch(url, options);
    connection.answeredAt = Date.now();
    connection.since = null;
    return response;
  } catch (error) {
    // A request that this page took back says nothing about the node.
    if (error.name !== "AbortError") connection.since ??= Date.now();
    throw error;
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

async function read(response) {
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  throw new ApiProblem(response.status, body);
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
