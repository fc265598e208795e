import { expect, it } from "vitest";
import { describeSettlingContract } from "../../contracts/chain/settling.ts";
import { type Json, proxyAt, startLyingEndpoints } from "../../support/lying-endpoints.ts";
import { rewrite } from "../../support/rpc-proxy.ts";

for (const endpoints of [1, 2, 3] as const) {
  const name = `EvmChain on EDR, ${endpoints} of its endpoints`;
  describeSettlingContract({ name, endpoints, start: () => startLyingEndpoints(endpoints) });
}

it("a tagged block that one of three makes up is outvoted, also at the same height", async () => {
  const { chain, proxies, mine, close } = await startLyingEndpoints(3);
  try {
    await mine();
    const isTag = ({ params }: { readonly params: readonly unknown[] }) => params[0] === "finalized";
    const fake = rewrite((block) => ({ ...(block as Json), hash: `0x${"ee".repeat(32)}` }));
    const honest = await chain.head("finalized");
    for (const liar of [0, 1, 2]) {
      const lie = proxyAt(proxies, liar).rule({ methods: ["eth_getBlockByNumber"], when: isTag }, fake);
      expect(await chain.head("finalized"), `endpoint ${liar}`).toEqual(honest);
      lie.lift();
    }
  } finally {
    await close();
  }
});
