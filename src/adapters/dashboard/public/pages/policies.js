/** @import { AnswerAt, Child, Columns, PageOf, Usage } from "../../page-types.ts" */
import { failureOf, readApi } from "../api.js";
import { h } from "../dom.js";
import { countOf, momentOf } from "../formats.js";
import { age, cell, code, empty, ether, laneLink, quiet, said, saidLines, section, table } from "../parts/words.js";

/** @typedef {{ readonly policies: AnswerAt<"/policy">, readonly usage: Usage, readonly keys: AnswerAt<"/keys"> | null }} PoliciesData */

/**
 * Page of the policies, their usage, and the API keys.
 *
 * @type {PageOf<PoliciesData>}
 */
export const policiesPage = {
  title: () => "Policies and keys",

  async load({ signal }) {
    const [policies, usage, keys] = await Promise.all([
      readApi("/policy", { signal }),
      readApi("/policy/usage", { signal }),
      // Listing API keys requires the scope `admin`; without it the list is left out.
      readApi("/keys", { signal }).catch((error) => (failureOf(error).status === 403 ? null : Promise.reject(error))),
    ]);
    return { policies, usage, keys };
  },

  view({ policies, usage, keys }) {
    return [
      h("div.title", h("h1", "Policies and keys")),
      section("Used of the limits", { aside: quiet("this hour and day, UTC") }, usageTable(usage)),
      section("API keys", { aside: quiet("those of the database") }, keyTable(keys)),
      section(
        "Policies in force",
        { aside: changeOf(policies) },
        policies.policies === null
          ? empty("None: every signer may pay anybody, up to the ceilings of the chain.")
          : h(
              "pre",
              { tabindex: "0", "aria-label": "Policies" },
              saidLines(JSON.stringify(policies.policies, null, 2), 20_000),
            ),
      ),
    ];
  },
};

/**
 * Shows the version of the policies, who changed it, when and why.
 *
 * @param {AnswerAt<"/policy">} policies
 */
function changeOf({ version, hash, changedAt, changedBy, reason }) {
  if (hash === null) return null;
  return [
    `version ${version} `,
    quiet(`by ${changedBy}, ${changedAt === null ? "" : momentOf(changedAt)}: `),
    said(reason ?? "", 200),
    " ",
    code(hash.slice(0, 18)),
  ];
}

/** @param {Usage} usage */
function usageTable({ signers, keys }) {
  if (signers.length + keys.length === 0)
    return empty("Nothing is counted: no policy has a limit, or nothing was sent.");
  /** @type {Columns} */
  const columns = [
    ["Who", "grow"],
    ["Value, hour", "right"],
    ["Value, day", "right"],
    ["Cost, hour", "right wide"],
    ["Cost, day", "right wide"],
  ];
  /**
   * @param {string} name
   * @param {Usage["signers"][number] | Usage["keys"][number]} use
   * @param {Child} shown
   */
  const row = (name, { chainId, hour, day }, shown) =>
    h(
      "tr",
      { key: `${name}${chainId}` },
      cell("grow", shown),
      cell("right", used(hour.value, hour.maxValue)),
      cell("right", used(day.value, day.maxValue)),
      cell("right wide", used(hour.cost, hour.maxCost)),
      cell("right wide", used(day.cost, day.maxCost)),
    );
  const rows = [
    ...signers.map((each) => row(each.signer, each, laneLink(each.chainId, each.signer))),
    ...keys.map((each) => row(each.key, each, [said(each.key, 64), quiet(` chain ${each.chainId}`)])),
  ];
  return table("Used of the limits", columns, rows);
}

/**
 * @param {string} amount
 * @param {string | null} most
 */
function used(amount, most) {
  if (most === null) return quiet(ether(amount));
  const isNear = BigInt(amount) * 10n >= BigInt(most) * 9n;
  return h("span", { class: isNear ? "bad" : null }, ether(amount), " of ", ether(most));
}

/** @param {AnswerAt<"/keys"> | null} keys */
function keyTable(keys) {
  if (keys === null) return empty("Your key may not see them: that takes a key with admin.");
  if (keys.items.length === 0) return empty("None. Keys of the configuration are not listed here.");
  const rows = keys.items.map(({ name, scopes, signers, chains, secrets, createdAt }) =>
    h(
      "tr",
      { key: name },
      cell("grow", h("b", name)),
      cell("", scopes.join(", ")),
      cell(
        "wide",
        signers === null ? quiet("all signers") : `${countOf(signers.length)} signers`,
        chains !== null && `, chains ${chains.join(", ")}`,
      ),
      cell("right wide", `${countOf(secrets.length)}`),
      cell("right", age(createdAt)),
    ),
  );
  return table(
    "API keys",
    [["Name", "grow"], ["Scopes"], ["Limited to", "wide"], ["Secrets", "right wide"], ["Made", "right"]],
    rows,
  );
}
