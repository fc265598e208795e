/** Masks URLs for people, and lists the secrets in them that no log line may contain. */
import { sendRuleOf } from "../../adapters/evm/rpc/send-rule.ts";
import { MASK } from "../../domain/text/mask.ts";
import { parseUrl } from "./credentials.ts";

/** Providers put their token into the path. Ordinary path segments are not longer than this. */
const LONGEST_PLAIN_SEGMENT = 15;
const SECRET_PARAMETER = /pass|secret|token|key/i;

/** Keeps user, host and database readable. */
export function maskDatabaseUrl(value: string): string {
  const url = parseUrl(value);
  if (url === null) return MASK;
  const password = url.password === "" ? "" : `:${MASK}`;
  const user = url.username === "" && password === "" ? "" : `${url.username}${password}@`;
  return `${url.protocol}//${user}${url.host}${url.pathname}${query(url, (key) => SECRET_PARAMETER.test(key))}`;
}

/** Keeps host and short path segments readable. User, password, query values and long segments may be the token. */
export function maskRpcUrl(value: string): string {
  const url = parseUrl(value);
  if (url === null) return MASK;
  const user = url.username === "" && url.password === "" ? "" : `${MASK}@`;
  const path = url.pathname.split("/").map(maskToken).join("/");
  const rule = sendRuleOf(value) === null ? "" : url.hash;
  return `${url.protocol}//${user}${url.host}${path}${query(url, () => true)}${rule}`;
}

/** Masks a URL. A module's path is no secret. */
export function maskHookPlace(value: string): string {
  return parseUrl(value) === null ? value : maskRpcUrl(value);
}

export function secretsOfDatabaseUrl(value: string): readonly string[] {
  const url = parseUrl(value);
  if (url === null) return [];
  const parameters = [...url.searchParams].filter(([key]) => SECRET_PARAMETER.test(key)).map(([, text]) => text);
  return spellings([url.password, ...parameters], value);
}

export function secretsOfRpcUrl(value: string): readonly string[] {
  const url = parseUrl(value);
  if (url === null) return [];
  const { username, password, pathname, searchParams } = url;
  return spellings([username, password, ...pathname.split("/").filter(isToken), ...searchParams.values()], value);
}

export function secretsOfRpcUrls(urls: readonly string[]): readonly string[] {
  return urls.flatMap(secretsOfRpcUrl);
}

/** Secrets of a webhook: its whole path and query, because whoever knows them can post to it. */
export function secretsOfHookPlace(value: string): readonly string[] {
  const url = parseUrl(value);
  return url === null ? [] : [...secretsOfRpcUrl(value), url.pathname, `${url.pathname}${url.search}`];
}

function query(url: URL, isSecret: (key: string) => boolean): string {
  const pairs = [...url.searchParams].map(([key, text]) => `${maskToken(key)}=${isSecret(key) ? MASK : text}`);
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

function maskToken(segment: string): string {
  return isToken(segment) ? MASK : segment;
}

function isToken(segment: string): boolean {
  return segment.length > LONGEST_PLAIN_SEGMENT;
}

/** Each secret as the URL parser spells it, decoded, and as typed: an error message may quote any of them. */
function spellings(secrets: readonly string[], url: string): readonly string[] {
  const typed = /^[^/]*\/\/[^/?#]*?:([^/?#]*)@/.exec(url)?.[1] ?? "";
  const all = [...secrets.flatMap((secret) => [secret, decoded(secret)]), typed];
  return [...new Set(all)].filter((secret) => secret !== "");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
