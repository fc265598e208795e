/**
 * Notices that another program used a lane's key. They are red until acknowledged, then show who acknowledged them,
 * when and why.
 *
 * @import { Notice, SignerLane } from "../../page-types.ts"
 */
import { h } from "../dom.js";
import { countOf, plural } from "../formats.js";
import { actionFor } from "./actions.js";
import { actionButtons, withheld } from "./scopes.js";
import { age, code, said, section } from "./words.js";

/**
 * @param {readonly Notice[]} notices
 * @param {SignerLane} lane
 * @param {() => void} refresh
 */
export function openNotice(notices, lane, refresh) {
  const [open] = notices.filter(({ acknowledged }) => acknowledged === null);
  if (open === undefined) return null;
  const { noticeId, times, evidence, lastSeenAt } = open;
  const body = { times };
  const actions = ["acknowledge", "suspendLane", "killSigner"].map((word) => actionFor(word, { lane, noticeId, body }));
  return h(
    "div.notice.bad.foreign-use",
    { role: "alert" },
    h(
      "p",
      h("b", "Another program used this key"),
      times === 1 ? "" : ` ${countOf(times)} times`,
      ", last ",
      age(lastSeenAt),
      ": ",
      useOf(evidence[0]),
      ". If nobody here did it, the key is stolen.",
    ),
    h("div.buttons", actionButtons(actions, {}, refresh)),
    withheld(actions),
  );
}

/** @param {readonly Notice[]} notices */
export function pastNotices(notices) {
  const past = notices.flatMap(({ acknowledged, ...notice }) =>
    acknowledged === null ? [] : [{ ...notice, acknowledged }],
  );
  if (past.length === 0) return null;
  return section(
    "Uses of the key by others",
    { name: "notices" },
    h(
      "ul.decisions",
      past.map(({ noticeId, times, evidence, acknowledged: { by, at, why } }) =>
        h(
          "li",
          { key: noticeId },
          useOf(evidence[0]),
          times === 1 ? "" : ` and ${plural(times - 1, "more use")}`,
          ", acknowledged by ",
          said(by, 80),
          " ",
          age(at),
          h("p.reason", said(why, 400)),
        ),
      ),
    ),
  );
}

/** @param {Notice["evidence"][number] | undefined} evidence */
function useOf(evidence) {
  const { nonce, through, txHash } = evidence ?? {};
  const nonces = through === undefined || through === nonce ? `nonce ${nonce}` : `nonces ${nonce} to ${through}`;
  return txHash ? [`${nonces} went to `, code(txHash)] : `the chain counts ${nonces}`;
}
