/**
 * Use of an endpoint for sends. `yes`: unrestricted. `only`: private; a transaction sent to a private endpoint first is
 * sent only to private ones until it is disclosed. `never`: the endpoint is used for reads only.
 */
export const SEND_RULES = ["yes", "only", "never"] as const;
export type SendRule = (typeof SEND_RULES)[number];

const FRAGMENT = "#send=";

/**
 * Reads the send rule from the URL's fragment, which is never sent to a server. Null if the fragment is something else.
 */
export function sendRuleOf(url: string): SendRule | null {
  const { hash } = new URL(url);
  if (hash === "") return "yes";
  return SEND_RULES.find((rule) => hash === `${FRAGMENT}${rule}`) ?? null;
}

export function withSendRule(url: string, rule: SendRule): string {
  const bare = withoutSendRule(url);
  return rule === "yes" ? bare : `${bare}${FRAGMENT}${rule}`;
}

export const withoutSendRule = (url: string) => url.split("#", 1)[0] as string;
