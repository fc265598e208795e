/**
 * Sends the dashboard's requests to the node. The dashboard uses the public API only.
 *
 * @import { Action, AnswerAt, Problem, ReadArguments, ReadPath } from "../page-types.ts"
 */
import { byId } from "./dom.js";
import { queryOf } from "./routes.js";

const KEY = "fencepost-api-key";

/** A refusal of the node. `code` and `problem` are those of its problem document. */
export class ApiProblem extends Error {
  /**
   * @param {number} status
   * @param {Problem | null} problem
   */
  constructor(status, problem) {
    super(problem?.detail ?? `the node answered ${status}`);
    this.status = status;
    /** @type {string} */
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
 * Reads a path of the contract, such as `/tx/{txId}`. If the node requires an API key, the user is prompted for one and
 * the request is repeated.
 *
 * @template {ReadPath} P
 * @param {P} path
 * @param {ReadArguments<P>} given
 * @returns {Promise<AnswerAt<P>>}
 */
export async function readApi(path, ...[options]) {
  const { params = {}, query = {}, signal, withinMs = ANSWER_MS } = options ?? {};
  const filled = path.replace(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent(/** @type {Record<string, string>} */ (params)[name] ?? ""),
  );
  const text = queryOf(query);
  const body = await exchange(`api/v1${filled}${text === "" ? "" : `?${text}`}`, {}, { withinMs, signal });
  return /** @type {AnswerAt<P>} */ (body);
}

/**
 * Sends a request that changes something. `key`: its idempotency key; `path` includes `/api/v1`.
 *
 * @param {Pick<Action, "method" | "path" | "body"> & { readonly key?: string, readonly signal?: AbortSignal }} request
 * @returns {Promise<unknown>}
 */
export function sendApi({ method, path, body, key, signal }) {
  const headers = { "content-type": "application/json", ...(key === undefined ? {} : { "idempotency-key": key }) };
  const limits = { withinMs: ACTION_MS, signal };
  return exchange(path.replace(/^\//, ""), { method, headers, body: JSON.stringify(body ?? {}) }, limits);
}

/**
 * @param {string} url
 * @param {{ readonly method?: string, readonly headers?: Record<string, string>, readonly body?: string }} request
 * @param {{ readonly withinMs: number, readonly signal?: AbortSignal | undefined }} limits
 * @returns {Promise<unknown>}
 */
async function exchange(url, request, { withinMs, signal }) {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const headers = { ...request.headers, ...(key === null ? {} : { authorization: `Bearer ${key}` }) };
    const { ok, status, body } = await within(withinMs, signal, (limit) =>
      reach(url, { ...request, headers, signal: limit }),
    );
    if (status === 401) await askForKey(key);
    else if (ok && body !== null) return body;
    else throw new ApiProblem(status, /** @type {Problem | null} */ (body));
  }
}

/**
 * Sends a request and reads the whole response: received headers do not prove that the body follows.
 *
 * @param {string} url
 * @param {RequestInit} options
 */
async function reach(url, options) {
  const response = await fetch(url, options);
  const { ok, status } = response;
  const body = /** @type {unknown} */ (await response.json().catch(() => null));
  return { ok, status, body };
}

/**
 * Runs `work` with a signal that aborts after `ms`, or when `signal` aborts.
 *
 * @template T
 * @param {number} ms
 * @param {AbortSignal | undefined} signal
 * @param {(limit: AbortSignal) => Promise<T>} work
 */
async function within(ms, signal, work) {
  const limit = new AbortController();
  const leave = () => limit.abort(signal?.reason);
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

/** @type {Promise<void> | null} */
let asking = null;

/**
 * Prompts for an API key. Concurrent requests that got a 401 share one dialog. If another key was stored in the
 * meantime, no dialog opens, and the request is repeated with that key.
 *
 * @param {string | null} refused
 */
function askForKey(refused) {
  if (sessionStorage.getItem(KEY) !== refused) return Promise.resolve();
  asking ??= openDialog(refused).finally(() => {
    asking = null;
  });
  return asking;
}

/**
 * @param {string | null} refused
 * @returns {Promise<void>}
 */
function openDialog(refused) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("key-dialog"));
  const input = /** @type {HTMLInputElement} */ (byId("key-input"));
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

/** Makes a random id. `crypto.randomUUID` does not exist on pages served by plain http. */
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Message of a caught error. `status` is undefined if the node did not answer.
 *
 * @param {unknown} error
 * @returns {{ readonly status: number | undefined, readonly message: string, readonly name: string }}
 */
export function failureOf(error) {
  if (error instanceof ApiProblem) return { status: error.status, message: error.message, name: error.name };
  const { message, name } = error instanceof Error ? error : { message: String(error), name: "Error" };
  return { status: undefined, message, name };
}
