import { byId } from "./dom.js";

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

/** A request under /api/v1. Asks for a key where the node wants one, and then goes on as if nothing had been. */
export async function callApi(path, options = {}) {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const response = await fetch(`api/v1${path}`, { ...options, headers: headersOf(key, options.body) });
    if (response.status !== 401) return read(response);
    await askForKey(key);
  }
}

export async function readReadiness() {
  const response = await fetch("readyz");
  return response.json();
}

export function hasKey() {
  return sessionStorage.getItem(KEY) !== null;
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

/** Several loops may hit the 401 at once: they share one dialog. A key that changed meanwhile is tried first. */
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
