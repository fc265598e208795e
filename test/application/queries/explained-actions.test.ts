/**
 * Every action that `explain` offers must work. For every waiting transaction of every scenario, each offered action is
 * carried out exactly as offered, in a new test environment. If the first offered action is carried out again and
 * again, the transaction gets mined.
 */
import { afterEach, describe, expect, it } from "vitest";
import { ROUTE_SCOPES } from "../../../src/contract/scopes.ts";
import type { Explanation } from "../../../src/domain/troubles/situation.ts";
import { take, type Waiting, WORLDS } from "../../support/explained-worlds.ts";

let waiting: Waiting | null = null;
afterEach(async () => {
  await waiting?.world.close();
  waiting = null;
});

async function begin(make: () => Promise<Waiting>): Promise<Waiting> {
  await waiting?.world.close();
  waiting = await make();
  return waiting;
}

const ask = ({ world, entry }: Waiting, txId: string): Promise<Explanation> =>
  world.settle(entry.node.api.explain(txId));

const FIRST_MOVES_AT_MOST = 6;

describe.each(Object.entries(WORLDS))("the actions that the explanation offers if %s", (name, make) => {
  // protects [Explained, and said aloud] src/domain/troubles/possible.ts, src/domain/troubles/advice.ts
  it("are all accepted when they are sent", async () => {
    const { txIds } = await begin(make);
    for (let place = 0; place < txIds.length; place++) {
      const here = await begin(make);
      const { actions } = await ask(here, here.txIds[place] ?? "");
      for (let chosen = 0; chosen < actions.length; chosen++) {
        const there = await begin(make);
        const offered = (await ask(there, there.txIds[place] ?? "")).actions[chosen];
        if (offered === undefined) throw new Error("the same world offered something else");
        await expect(take(there, offered), `${name}, ${place}: ${offered.path}`).resolves.toBeDefined();
        expect(there.world.wire.violations).toEqual([]);
      }
    }
  });

  // protects [Explained, and said aloud] src/domain/troubles/possible.ts, src/domain/troubles/advice.ts
  it("have the scope that their route requires", async () => {
    const here = await begin(make);
    for (const txId of here.txIds) {
      const explanation = await ask(here, txId);
      expect(JSON.stringify(explanation)).not.toMatch(/[{][a-zA-Z]+[}]|undefined/);
      for (const { method, path, scope, code } of explanation.actions) {
        const template = path
          .replace(/\/tx\/[0-9a-f-]{36}\//, "/tx/{txId}/")
          .replace(/\/signers\/0x\w{40}\//, "/signers/{signer}/");
        expect(ROUTE_SCOPES[`${method.toLowerCase()} ${template}`]?.scope).toBe(scope);
        expect(explanation.help.map((each) => each.code)).toContain(code);
      }
      const isLeftAlone = explanation.help.some(({ code }) => code === "WAIT");
      expect(isLeftAlone && explanation.help.length > 1).toBe(false);
    }
  });

  // protects [Explained, and said aloud] src/domain/troubles/possible.ts, src/domain/troubles/advice.ts
  it("lead every transaction to a final state", async () => {
    const here = await begin(make);
    for (const txId of here.txIds) {
      for (let moves = 0; moves < FIRST_MOVES_AT_MOST; moves++) {
        const [first] = (await ask(here, txId)).actions;
        if (first === undefined) break;
        await take(here, first);
        await here.world.clock.advance(2_000);
      }
    }
    const last = await Promise.all(here.txIds.map((txId) => ask(here, txId)));
    if (last.some(({ help: [first] }) => OUTSIDE.has(first?.code ?? ""))) return;
    here.remedy?.();
    const isSettled = (txId: string): boolean =>
      ["CONFIRMED", "FAILED_FINAL"].includes(here.world.database.state.transactions.get(txId)?.state ?? "");
    await here.world.until(() => here.txIds.every(isSettled));
    expect(here.world.wire.violations).toEqual([]);
  });
});

/** Remedies that no request to Fencepost's API can perform. */
const OUTSIDE: ReadonlySet<string> = new Set([
  "FUND_SIGNER",
  "RAISE_CEILING",
  "RAISE_LIMIT",
  "USE_RESERVATION",
  "CHECK_SIGNER",
]);
