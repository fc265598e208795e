/**
 * The page's address: path and query behind `#`. It determines everything that a page shows, so that a shared link
 * shows the same page.
 *
 * @import { Query, Route } from "../page-types.ts"
 */

const HOME = "/";

/**
 * @param {string} hash
 * @returns {Route}
 */
export function parseRoute(hash) {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter((part) => part !== "");
  return {
    path: path === "" ? HOME : path,
    parts: parts.map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/**
 * Decodes a part of the address. An address typed by the user may be encoded wrongly.
 *
 * @param {string} part
 */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Makes a link: encodes `parts`, and leaves out empty members of `query`.
 *
 * @param {readonly string[]} parts
 * @param {Query} [query]
 */
export function linkTo(parts, query = {}) {
  const path = parts.map(encodeURIComponent).join("/");
  const text = queryOf(query);
  return `#/${path}${text === "" ? "" : `?${text}`}`;
}

/** @param {Query} query */
export function queryOf(query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
}

/** @param {string} subscriberId */
export const toWebhook = (subscriberId) => linkTo(["webhooks", subscriberId]);
/** @param {string} signatureId */
export const toSignature = (signatureId) => linkTo(["signatures", signatureId]);
/** @param {string} txId */
export const toTransaction = (txId) => linkTo(["tx", txId]);
/** @param {Query} [query] */
export const toTransactions = (query) => linkTo(["tx"], query);
/**
 * @param {string | number} chainId
 * @param {string} signer
 * @param {Query} [query]
 */
export const toLane = (chainId, signer, query) => linkTo(["lanes", String(chainId), signer], query);
