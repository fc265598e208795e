/**
 * Test transfers, offered only by `fencepost dev`, whose chain's ether has no value.
 *
 * @import { SignerLane } from "../../page-types.ts"
 */
import { failureOf, randomId, sendApi } from "../api.js";
import { h } from "../dom.js";
/** @import { BatchResults } from "../../../../contract/schemas/create.ts" */
import { plural, shortHex, weiOf } from "../formats.js";
import { nameOf } from "../world.js";

const result = { text: "", bad: false };

/** @param {readonly SignerLane[]} signers */
export function testTransfers(signers) {
  const options = signers.map(({ chainId, signer }) =>
    h("option", { value: `${chainId}:${signer}` }, nameOf(signer) ?? shortHex(signer)),
  );
  const to = (signers[1] ?? signers[0])?.signer;
  return h(
    "details.card.modest",
    { id: "send" },
    h("summary", "Send test transfers"),
    h(
      "form",
      { id: "send-form", onsubmit: send },
      h("label", "From ", h("select", { name: "signer", required: true }, options)),
      h(
        "label",
        "To ",
        h("input", {
          name: "to",
          required: true,
          spellcheck: "false",
          pattern: "0x[0-9a-fA-F]{40}",
          title: "0x and 40 hex digits",
          initially: to,
        }),
      ),
      h(
        "label",
        "Ether each ",
        h("input", {
          name: "amount",
          required: true,
          inputmode: "decimal",
          pattern: "[0-9]+([.][0-9]{1,18})?",
          title: "A decimal number",
          initially: "0.001",
        }),
      ),
      h(
        "label",
        "How many ",
        h("input", { name: "count", type: "number", required: true, min: "1", max: "100", initially: "1" }),
      ),
      h("button.solid", { type: "submit" }, "Send"),
      h("p", { id: "send-result", class: result.bad ? "result bad" : "result", role: "status" }, result.text),
    ),
  );
}

/** @param {SubmitEvent & { readonly target: HTMLFormElement }} event */
async function send(event) {
  event.preventDefault();
  const form = event.target;
  const button = form.querySelector("button");
  if (button !== null) button.disabled = true;
  try {
    const request = { method: /** @type {const} */ ("POST"), path: "/api/v1/tx/batch", body: batchOf(form) };
    const answer = /** @type {BatchResults} */ (await sendApi(request));
    Object.assign(result, outcomeOf(answer.results));
  } catch (error) {
    Object.assign(result, { text: failureOf(error).message, bad: true });
  } finally {
    if (button !== null) button.disabled = false;
    dispatchEvent(new Event("look-again"));
  }
}

/** @param {HTMLFormElement} form */
function batchOf(form) {
  const given = new FormData(form);
  const text = (/** @type {string} */ name) => String(given.get(name) ?? "").trim();
  const [chainId, address] = text("signer").split(":");
  const payload = { to: text("to"), value: weiOf(text("amount")) };
  const transactions = Array.from({ length: Number(text("count")) }, () => ({
    chainId: Number(chainId),
    signer: address,
    requestId: `dashboard-${randomId()}`,
    payload,
  }));
  return { transactions };
}

/** @param {readonly { readonly status: number, readonly nonce?: number | null, readonly detail?: string }[]} results */
function outcomeOf(results) {
  const taken = results.filter(({ status }) => status < 300);
  const refused = results.find(({ status }) => status >= 300);
  const nonces = taken.flatMap(({ nonce }) => nonce ?? []);
  const range = nonces.length > 1 ? `nonces ${Math.min(...nonces)} to ${Math.max(...nonces)}` : `nonce ${nonces[0]}`;
  const accepted = taken.length === 0 ? "" : `${plural(taken.length, "transfer")} accepted, ${range}.`;
  if (refused === undefined) return { text: accepted, bad: false };
  return { text: `${accepted} Refused: ${refused.detail}`.trim(), bad: true };
}
