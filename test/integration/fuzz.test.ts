/** `npm run test:fuzz` asks more, and from other seeds: FENCEPOST_FUZZ_REQUESTS, FENCEPOST_FUZZ_SEED. */
import { expect } from "vitest";
import { fuzz } from "../support/fuzz/fuzz.ts";
import { it } from "../support/integration.ts";
import { pricedTransfer } from "../support/transfers.ts";

const REQUESTS = Number(process.env.FENCEPOST_FUZZ_REQUESTS ?? 2_000);
const SEED = Number(process.env.FENCEPOST_FUZZ_SEED ?? 1);

it(
  `${REQUESTS} requests, sound and mistaken, are answered as the document says, and none is a mistake of the node's`,
  async ({ nodes, simulated }) => {
    const node = await nodes.start(simulated.url, { FENCEPOST_LOG_LEVEL: "error" });
    const { faults, answers, operations } = await fuzz({ url: node.url, requests: REQUESTS, seed: SEED });
    if (process.env.FENCEPOST_FUZZ_REQUESTS !== undefined)
      process.stdout.write(`${JSON.stringify([...answers].sort())}\n`);
    expect(faults).toEqual([]);
    expect(node.stderr()).not.toMatch(/unforeseen|unhandled|TypeError|RangeError/i);
    // It got somewhere: but for the one that takes a signature, and a few that need another's luck, operations did their work.
    const hasSucceeded = (name: string) => [...answers.keys()].some((key) => key.startsWith(`${name} 2`));
    process.stdout.write(
      `MISSING ${JSON.stringify(operations.filter((n) => !hasSucceeded(n)))} of ${operations.length} ${JSON.stringify([...answers].sort())}\n`,
    );
    expect(operations.filter(hasSucceeded).length).toBeGreaterThan(operations.length - 7);
    expect((await fetch(`${node.url}/readyz`)).status).toBe(200);
    expect((await node.client.send(pricedTransfer(1_000_000))).txId).toMatch(/^[0-9a-f-]{36}$/);
  },
  120_000 + REQUESTS * 60,
);
