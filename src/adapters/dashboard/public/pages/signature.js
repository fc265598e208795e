/** @import { PageOf, Signature } from "../../page-types.ts" */
import { readApi } from "../api.js";
import { h } from "../dom.js";
import { actionsForSignature } from "../parts/actions.js";
import { actionButtons, withheld } from "../parts/scopes.js";
import { messageFacts, messageName, messageShown, signatureState } from "../parts/signed-message.js";
import { age, code, said, section } from "../parts/words.js";

const LOOK_MS = 5_000;

/**
 * Page of one requested signature: who asked for it, by which rule, and what is signed.
 *
 * @type {PageOf<Signature>}
 */
export const signaturePage = {
  title: () => "Signature",
  load: ({ route: { parts }, signal }) =>
    readApi("/signatures/{signatureId}", { params: { signatureId: parts[1] ?? "" }, signal }),
  everyMs: ({ state }) => (state === "AWAITING_APPROVAL" || state === "ALLOWED" ? LOOK_MS : null),

  view(signature, { refresh }) {
    const actions = actionsForSignature(signature);
    const about = { signature };
    return [
      h("div.title", h("h1", messageName(signature)), signatureState(signature)),
      actions.length === 0 ? null : h("div.buttons", actionButtons(actions, about, refresh)),
      withheld(actions, about),
      section("Who asked, and what allowed it", { name: "request" }, messageFacts(signature, audit(signature))),
      section("What was shown", { name: "message" }, messageShown(signature)),
    ];
  },
};

/** @param {Signature} signature */
function audit({ requestId, digest, createdAt, signedAt, decision }) {
  return {
    "Request id": said(requestId, 255),
    Digest: code(digest),
    Asked: age(createdAt),
    Signed: signedAt === null ? null : age(signedAt),
    Decided:
      decision === null ? null : [age(decision.at), " by ", said(decision.actor, 80), ": ", said(decision.reason, 400)],
  };
}
