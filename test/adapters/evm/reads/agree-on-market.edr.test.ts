/** Tests the gas price from one and from two endpoints of a real chain; each endpoint may alter its responses. */
import { afterEach, describe, expect, it } from "vitest";
import {
  type Json,
  type LyingEndpoints,
  lieAboutPrices,
  proxyAt,
  startLyingEndpoints,
} from "../../../support/lying-endpoints.ts";
import { hang, pretend, rewrite } from "../../../support/rpc-proxy.ts";

const GWEI = 1_000_000_000n;
const BASE_FEE = 30n * GWEI;
const HIGH = { baseFee: 900n * GWEI, tip: 900n * GWEI };
const LOW = { baseFee: 7n, tip: 0n };

let scene: LyingEndpoints;
afterEach(() => scene.close());

async function mine(): Promise<void> {
  await scene.node.rpc("hardhat_setNextBlockBaseFeePerGas", [`0x${BASE_FEE.toString(16)}`]);
  await scene.mine();
}

async function start(endpoints: number): Promise<void> {
  scene = await startLyingEndpoints(endpoints);
  await mine();
  await mine();
}

function changeBlocks(endpoint: number, change: (block: Json) => Json): { lift(): void } {
  const methods = ["eth_getBlockByNumber", "eth_getBlockByHash"];
  return proxyAt(scene.proxies, endpoint).rule(
    { methods },
    rewrite((block) => block && change(block as Json)),
  );
}

describe("the agreed fee market of two endpoints", () => {
  it.each([
    ["high", 0, HIGH],
    ["high", 1, HIGH],
    ["low", 0, LOW],
    ["low", 1, LOW],
  ])(
    // protects [Sent again, priced again, stuck] src/adapters/evm/reads/agree-on-market.ts
    "has the base fee of the valid header if one endpoint reports too %s fees (endpoint %i)",
    async (_, liar, lie) => {
      await start(2);
      lieAboutPrices(proxyAt(scene.proxies, liar), lie);
      const market = await scene.chain.feeMarket();
      expect(market).toMatchObject({ baseFees: [BASE_FEE], agreed: true });
      expect(market.gasPrice).toBeLessThanOrEqual(BASE_FEE + 2n * GWEI);
      expect(market.priorityFees.every((tip) => tip <= GWEI)).toBe(true);
      const label = proxyAt(scene.proxies, liar).url;
      expect(market.disputed?.[0]).toContain(`${label} shows block 2 with a header that does not hash`);
    },
  );

  it("equals the market of each honest endpoint", async () => {
    await start(2);
    await scene.chain.feeMarket();
    const before = scene.proxies.map(({ requests }) => requests.length);
    const market = await scene.chain.feeMarket();
    expect(market).toMatchObject({ baseFees: [BASE_FEE], agreed: true });
    expect(market).not.toHaveProperty("disputed");
    expect(market).not.toHaveProperty("dearer");
    expect(scene.proxies.map(({ requests }, index) => requests.length - (before[index] ?? 0))).toEqual([1, 1]);
  });

  it("uses the newest common block header if one endpoint is behind", async () => {
    await start(2);
    scene.pin(0, 1);
    await mine();
    lieAboutPrices(proxyAt(scene.proxies, 0), HIGH);
    const market = await scene.chain.feeMarket();
    expect(market).toMatchObject({ baseFees: [BASE_FEE], agreed: true });
    expect(market.disputed?.[0]).toContain("shows block 1 with a header that does not hash");
  });

  it("has the lower base fee if the endpoints have different blocks at one height", async () => {
    await start(2);
    lieAboutPrices(proxyAt(scene.proxies, 1), HIGH);
    changeBlocks(1, (block) => ({ ...block, hash: `0x${"ab".repeat(32)}` }));
    const market = await scene.chain.feeMarket();
    expect(market).toMatchObject({ baseFees: [BASE_FEE], dearer: { baseFee: HIGH.baseFee } });
    expect(market).not.toHaveProperty("agreed");
    expect(market.disputed).toHaveLength(2);
  });

  // protects [Sent again, priced again, stuck] src/adapters/evm/reads/agree-on-market.ts
  it("contains only equal values if block headers cannot be hashed", async () => {
    await start(2);
    for (const endpoint of [0, 1]) changeBlocks(endpoint, (block) => ({ ...block, extraData: "0xabcd" }));
    expect(await scene.chain.feeMarket()).toMatchObject({ baseFees: [BASE_FEE], agreed: true });
    const lie = lieAboutPrices(proxyAt(scene.proxies, 0), HIGH);
    const market = await scene.chain.feeMarket();
    expect(market).toMatchObject({ baseFees: [BASE_FEE], dearer: { baseFee: HIGH.baseFee } });
    expect(market.disputed?.join()).toContain("says that block 2 has a base fee of 900000000000 wei");
    lie.lift();
    expect(await scene.chain.feeMarket()).not.toHaveProperty("disputed");
  });

  // protects [Sent again, priced again, stuck] src/adapters/evm/reads/agree-on-market.ts
  it("stays unchanged while one endpoint does not answer", async () => {
    await start(2);
    const agreed = await scene.chain.feeMarket();
    proxyAt(scene.proxies, 1).rule({ methods: ["eth_feeHistory"] }, hang);
    lieAboutPrices(proxyAt(scene.proxies, 0), HIGH);
    expect(await scene.chain.feeMarket()).toEqual(agreed);
  });
});

describe("the fee market of a single endpoint", () => {
  // protects [Sent again, priced again, stuck] src/application/chain/head-follower.ts, src/adapters/evm/reads/agree-on-market.ts
  it("keeps the last valid base fee if a block header does not match its hash", async () => {
    await start(1);
    expect(await scene.chain.feeMarket()).toMatchObject({ baseFees: [BASE_FEE] });
    const lie = lieAboutPrices(proxyAt(scene.proxies, 0), HIGH);
    expect(await scene.chain.feeMarket()).toMatchObject({
      baseFees: [BASE_FEE],
      disputed: [expect.stringContaining("does not hash")],
    });
    lie.lift();
    expect(await scene.chain.feeMarket()).not.toHaveProperty("disputed");
  });

  it("is accepted without proof if no block header ever matched its hash", async () => {
    await start(1);
    lieAboutPrices(proxyAt(scene.proxies, 0), HIGH);
    const { baseFees } = await scene.chain.feeMarket();
    expect(baseFees.at(-1)).toBe(HIGH.baseFee);
  });

  it("ignores a base fee that the endpoint's own block header contradicts", async () => {
    await start(1);
    const history = { oldestBlock: "0x1", baseFeePerGas: ["0xd18c2e2800", "0xd18c2e2800"], gasUsedRatio: [0.5] };
    proxyAt(scene.proxies, 0).rule(
      { methods: ["eth_feeHistory"] },
      pretend(() => history),
    );
    expect((await scene.chain.feeMarket()).baseFees).toEqual([BASE_FEE]);
  });
});
