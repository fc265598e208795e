/**
 * How sends use an endpoint. `yes`: like any other. `only`: a private one; a transaction that was first given to such an
 * endpoint is given to no other kind until it is disclosed. `never`: it is read from, and nothing is sent to it.
 */
export const SEND_RULES = ["yes", "only", "never"] as const;
export type SendRule = (typeof SEND_RULES)[number];

const FRAGMENT = "#send=";

/** The rule travels in the URL's fragment, which is never sent to a server. Null: a fragment that says something else. */
export function sendRuleOf(url: string): SendRule | null {
  const { hash } = new URL(url);
  if (hash === "") return "yes";
  return SEND_RULES.find((rule) => hash === `${FRAGMENT}${rule}`) ?? null;
}

export function withSendRule(url: string, rule: SendRule): string {
  const bare = withoutSendRule(url);
  return rule === "yes" ? bare : `${bare}${FRAGMENT}${rule}`;
}

export function withoutSendRule(url: string): string {
  return url.split("#", 1)[0] as string;
}
