import { callApi } from "./api.js";
import { byId, h, plural, shortHex, weiOf } from "./dom.js";

/** Chains whose ether is play money: the ids that development nodes use. Elsewhere the form does not exist. */
const DEVELOPMENT_CHAINS = [31337, 1337];

let offered = "";

/** Shows the form where there is somebody to send from; keeps what was already chosen. */
export function offerSending(lanes) {
  const usable = lanes.filter(({ chainId }) => DEVELOPMENT_CHAINS.includes(chainId));
  byId("send").hidden = usable.length === 0;
  const signature = usable.map(({ chainId, signer }) => `${chainId}:${signer}`).join();
  if (signature === offered) return;
  offered = signature;
  const form = byId("send-form");
  form.elements.signer.replaceChildren(
    ...usable.map(({ chainId, signer }) => h("option", { value: `${chainId}:${signer}` }, shortHex(signer))),
  );
  form.elements.to.value ||= (usable[1] ?? usable[0])?.signer ?? "";
}

export function listenForSending(onSent) {
  const form = byId("send-form");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void send(form, onSent);
  });
}

async function send(form, onSent) {
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const { results } = await callApi("/tx/batch", { method: "POST", body: JSON.stringify(batchOf(form.elements)) });
    say(outcomeOf(results));
    onSent();
  } catch (error) {
    say({ text: error.message, bad: true });
  } finally {
    button.disabled = false;
  }
}

function batchOf({ signer, to, amount, count }) {
  const [chainId, address] = signer.value.split(":");
  const payload = { to: to.value.trim(), value: weiOf(amount.value) };
  const transactions = Array.from({ length: Number(count.value) }, () => ({
    chainId: Number(chainId),
    signer: address,
    requestId: `dashboard-${randomId()}`,
    payload,
  }));
  return { transactions };
}

/** `crypto.randomUUID` exists on secure origins only; a dashboard on plain http is not one. */
function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function outcomeOf(results) {
  const taken = results.filter(({ status }) => status < 300);
  const refused = results.find(({ status }) => status >= 300);
  const nonces = taken.map(({ nonce }) => nonce).filter((nonce) => nonce !== null);
  const range = nonces.length > 1 ? `nonces ${Math.min(...nonces)} to ${Math.max(...nonces)}` : `nonce ${nonces[0]}`;
  const accepted = taken.length === 0 ? "" : `${plural(taken.length, "transfer")} accepted, ${range}.`;
  if (refused === undefined) return { text: accepted, bad: false };
  return { text: `${accepted} Refused: ${refused.detail}`.trim(), bad: true };
}

function say({ text, bad }) {
  const result = byId("send-result");
  result.textContent = text;
  result.classList.toggle("bad", bad);
}
