/** Masks URLs for people, and lists the secrets in them that no log line may contain. */
import { sendRuleOf } from "../../adapters/evm/rpc/send-rule.ts";
import { MASK } from "../../domain/text/mask.ts";
import { parseUrl } from "./credentials.ts";

/**
 * Longest path segment that is shown. Providers put their token into the path; a longer segment may be such a token.
 */
const LONGEST_PLAIN_SEGMENT = 15;
const SECRET_PARAMETER = /pass|secret|token|key/i;

/** Masks a database URL; user, host and database stay readable. */
export function maskDatabaseUrl(value: string): string {
  return masked(value, (url) => {
    const password = url.password === "" ? "" : `:${MASK}`;
    const user = url.username === "" && password === "" ? "" : `${url.username}${password}@`;
    return `${user}${url.host}${url.pathname}${query(url, (key) => SECRET_PARAMETER.test(key))}`;
  });
}

/**
 * Masks an endpoint's URL. User, password, query values and long path segments are hidden, because they may contain the
 * token; host and short path segments stay readable.
 */
export function maskRpcUrl(value: string): string {
  return masked(value, (url) => {
    const user = url.username === "" && url.password === "" ? "" : `${MASK}@`;
    const path = url.pathname.split("/").map(maskToken).join("/");
    const rule = sendRuleOf(value) === null ? "" : url.hash;
    return `${user}${url.host}${path}${query(url, () => true)}${rule}`;
  });
}

function masked(value: string, mask: (url: URL) => string) {
  const url = parseUrl(value);
  return url === null ? MASK : `${url.protocol}//${mask(url)}`;
}

/** Masks the address of a hook if it is a URL. A module's path is no secret. */
export function maskHookPlace(value: string): string {
  return parseUrl(value) === null ? value : maskRpcUrl(value);
}

export function secretsOfDatabaseUrl(value: string): readonly string[] {
  return spellings(value, ({ password, searchParams }) => [
    password,
    ...[...searchParams].filter(([key]) => SECRET_PARAMETER.test(key)).map(([, text]) => text),
  ]);
}

export function secretsOfRpcUrl(value: string): readonly string[] {
  return spellings(value, ({ username, password, pathname, searchParams }) => [
    ...[username, password, ...pathname.split("/").filter(isToken)],
    ...searchParams.values(),
  ]);
}

export function secretsOfRpcUrls(urls: readonly string[]): readonly string[] {
  return urls.flatMap(secretsOfRpcUrl);
}

/** Secrets of a webhook: its whole path and query, because they are enough to post to it. */
export function secretsOfHookPlace(value: string): readonly string[] {
  const url = parseUrl(value);
  return url === null ? [] : [...secretsOfRpcUrl(value), url.pathname, `${url.pathname}${url.search}`];
}

function query(url: URL, isSecret: (key: string) => boolean) {
  const pairs = [...url.searchParams].map(([key, text]) => `${maskToken(key)}=${isSecret(key) ? MASK : text}`);
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

function maskToken(segment: string) {
  return isToken(segment) ? MASK : segment;
}

function isToken(segment: string) {
  return segment.length > LONGEST_PLAIN_SEGMENT;
}

/**
 * Each secret in three forms: as the URL parser writes it, decoded, and as typed. An error message may quote any of
 * them.
 */
function spellings(value: string, secretsOf: (url: URL) => readonly string[]): readonly string[] {
  const url = parseUrl(value);
  if (url === null) return [];
  const typed = /^[^/]*\/\/[^/?#]*?:([^/?#]*)@/.exec(value)?.[1] ?? "";
  const all = [...secretsOf(url).flatMap((secret) => [secret, decoded(secret)]), typed];
  return [...new Set(all)].filter((secret) => secret !== "");
}

function decoded(text: string) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
