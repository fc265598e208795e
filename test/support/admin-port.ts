/** Starts nodes with a separate port for operators, and API keys with limited permissions. */
import { expect } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { SIGNER } from "./integration.ts";
import type { Ready } from "./node-process.ts";
import { pricedTransfer, range } from "./transfers.ts";

export const [GREEDY, MODEST, OPS] = ["g", "m", "o"].map((letter) => letter.repeat(22)) as [string, string, string];
export const SPLIT = {
  FENCEPOST_ADMIN_PORT: "0",
  FENCEPOST_AUTH: "keys",
  FENCEPOST_API_KEYS: `greedy:${GREEDY},modest:${MODEST},ops:${OPS}:read+operate+admin`,
  FENCEPOST_QUEUE_LIMIT: "20",
  FENCEPOST_KEY_QUEUE_SHARE: "0.5",
  FENCEPOST_KEY_RATE: "5",
};
export const RATE = 5;
export const SHARE = 10;

export type Door = Required<Pick<Ready, "url" | "adminUrl">>;
let serial = 0;

export const operatorAt = ({ adminUrl }: Door) => createClient({ url: adminUrl, apiKey: OPS, repeat: false });

async function post(url: string, secret: string, body: unknown) {
  const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = (await response.json()) as {
    readonly results?: readonly { status: number }[];
    readonly rule?: string;
  };
  return { status: response.status, body: answer, left: response.headers.get("ratelimit") };
}

export function create({ url }: Door, secret: string) {
  return post(`${url}/api/v1/tx`, secret, { ...pricedTransfer(serial++), signer: SIGNER });
}

export async function batch({ url }: Door, secret: string, count: number) {
  const transactions = range(count).map(() => ({ ...pricedTransfer(serial++), signer: SIGNER }));
  const { body, left } = await post(`${url}/api/v1/tx/batch`, secret, { transactions });
  return { left, statuses: body.results?.map(({ status }) => status) };
}

export async function expectSplit({ url, adminUrl }: Door): Promise<void> {
  const headers = { authorization: `Bearer ${OPS}` };
  for (const path of ["/metrics", "/api/v1/keys", "/"]) {
    expect((await fetch(`${url}${path}`, { headers })).status, path).toBe(404);
    expect((await fetch(`${adminUrl}${path}`, { headers })).status, path).toBe(200);
  }
  expect((await fetch(`${url}/internal/v1/creates`, { method: "POST" })).status).toBe(404);
  expect((await fetch(`${adminUrl}/internal/v1/creates`, { method: "POST" })).status).toBe(401);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
}
