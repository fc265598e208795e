import { Compile } from "typebox/compile";
import { describe, expect, it } from "vitest";
import { ROUTES } from "../../../src/contract/routes.ts";
import { AWAITING_TX, night, STUCK_TX } from "../../support/staged/night.ts";
import { FAILING_WEBHOOK, WAITING_SIGNATURE } from "../../support/staged/outcomes-and-messages.ts";

const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const ASKED: readonly (readonly [string, string])[] = [
  ["/attention", "/attention"],
  ["/overview", "/overview"],
  ["/search", "/search?q=payout"],
  ["/tx", "/tx?limit=80"],
  ["/tx/{txId}", `/tx/${STUCK_TX}`],
  ["/tx/{txId}", `/tx/${STUCK_TX}?include=logs`],
  ["/tx/{txId}/explain", `/tx/${STUCK_TX}/explain`],
  ["/tx/completions", "/tx/completions"],
  ["/signers", "/signers"],
  ["/signers/{signer}", `/signers/${SIGNER}`],
  ["/signers/{signer}/nonces", `/signers/${SIGNER}/nonces?from=0&to=60`],
  ["/tx/{txId}", `/tx/${AWAITING_TX}`],
  ["/notices", "/notices"],
  ["/nodes", "/nodes"],
  ["/cluster/history", "/cluster/history"],
  ["/policy", "/policy"],
  ["/policy/usage", "/policy/usage"],
  ["/keys", "/keys"],
  ["/me", "/me"],
  ["/signer-names", "/signer-names"],
  ["/history", "/history?chainId=8453"],
  ["/history", "/history"],
  ["/webhooks", "/webhooks"],
  ["/webhooks/{subscriberId}", `/webhooks/${FAILING_WEBHOOK}`],
  ["/signatures", "/signatures"],
  ["/signatures/{signatureId}", `/signatures/${WAITING_SIGNATURE}`],
  ["/costs", "/costs?by=day&from=2026-11-02T09:00:00.000Z&to=2026-11-02T10:00:00.000Z"],
];

/** The dashboard tests use fixed responses. These must be responses that a real node can give. */
describe("the fixture responses of the dashboard tests", () => {
  const scene = night({ now: () => new Date() });

  it.each(ASKED)("match the API contract's schema for %s", async (route, asked) => {
    const { pathname, searchParams: query } = new URL(asked, "http://night");
    const answer = await scene({ method: "GET", path: pathname, query, body: null, headers: {} });
    const schema = ROUTES.find(({ method, path }) => method === "get" && path === `/api/v1${route}`)?.answers[200]
      ?.schema;
    if (schema === undefined) throw new Error(`${route} has no schema`);
    expect([...Compile(schema).Errors(answer)].slice(0, 3)).toEqual([]);
  });
});
