/** The commands that `attention` and `explain` print make the requests that the node suggested. */
import { describe, expect, it } from "vitest";
import { commandOf } from "../../../src/adapters/cli/remedies.ts";
import type { Attention } from "../../../src/client/index.ts";
import { offersFor } from "../../../src/domain/troubles/advice.ts";
import { runCommand } from "../../support/command.ts";
import { recordedNode } from "../../support/recorded-node.ts";
import { shellWords } from "../../support/shell-words.ts";

const ID = "019a4b7e-0000-7000-8000-000000000001";
/** The webhook of the sample answers, which the command looks up by its id. */
const WEBHOOK = "019a4b7e-9c1d-7e20-8f31-4a5b6c7d8e9f";
const SIGNER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const target = {
  ...{ txId: ID, chainId: 5, signer: SIGNER, hole: { nonce: 7, txId: ID } },
  notice: { noticeId: "5c1f9a70-1e6f-4a58-9d43-0c2b7f2f6a11", times: 3 },
  ...{ subscriberId: WEBHOOK, signatureId: ID },
};
const CODES = [
  ...(["END_KILL", "RESUME_LANE", "SUSPEND_LANE", "STOP_SIGNER", "RESUME_TRANSACTION", "REPRICE", "RESUBMIT"] as const),
  ...(["DISCLOSE", "CANCEL", "APPROVE", "FILL_HOLE", "ACKNOWLEDGE", "LOOK_AT_NODES"] as const),
  ...(["RESUME_WEBHOOK", "PAUSE_WEBHOOK", "LOOK_AT_WEBHOOK", "DECIDE_SIGNATURE"] as const),
];
const offers = [
  ...CODES.flatMap((code) => offersFor(target, [code])),
  ...offersFor({ ...target, isOwnKill: true }, ["END_KILL"]),
];

describe("a command to paste", () => {
  // protects [The command line] src/adapters/cli/remedies.ts
  it.each(offers.map((offer) => [`${offer.method} ${offer.path}`, offer] as const))(
    "makes the request %s",
    async (_, { action, method, path, body }) => {
      const offered = { action, method, path, body: body === null ? null : { ...body }, label: "" };
      const command = commandOf(offered, { reach: "" }, "attention: it costs $5");
      const { asked, actions } = recordedNode();
      const { code, stderr } = await runCommand(shellWords(command).slice(1), {
        ...(actions && { actions }),
      });
      expect(code, stderr).toBe(0);
      const request = asked.at(-1);
      const pattern = new RegExp(`^${request?.route.path.replace(/\{\w+\}/g, "[^/]+")}$`);
      expect(request?.route.method).toBe(method.toLowerCase());
      expect(path).toMatch(pattern);
      if (body !== null) expect(request?.body).toMatchObject({ ...body, reason: "attention: it costs $5" });
    },
  );

  it("repeats the options that chose the node", async () => {
    const items: Attention["items"] = [
      {
        ...{ id: "x", severity: "ERROR", code: "STUCK", sentence: "Stuck.", since: null, chainId: 1, signer: SIGNER },
        ...{ txId: ID, nonce: 7, nodeId: null, endpoint: null, waiting: 0 },
        actions: [...offersFor(target, ["REPRICE"])] as unknown as Attention["items"][number]["actions"],
      },
    ];
    const attention = async () => ({ revision: "1", asOf: "2026-01-01T00:00:00.000Z", items, more: 0, past: [] });
    const actions = { connect: async () => ({ attention }) as never };
    const { stdout } = await runCommand(["attention", "--profile", "production"], { actions });
    expect(stdout).toContain(`  fencepost reprice ${ID} --reason "attention: STUCK" --profile production\n`);
    expect(stdout).not.toContain("/api/v1");
  });
});
