import { afterEach, describe, expect, it } from "vitest";
import type { Hex } from "../../../src/domain/lane.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { CHAIN_ID, SIGNER, SIGNERS, TO, World } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

async function signed(value: bigint): Promise<Hex> {
  const fees = { type: "eip1559", maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n } as const;
  const content = { chainId: CHAIN_ID, nonce: 0, to: TO, data: "0x", value, gas: 21_000n, accessList: [] } as const;
  const [made] = await new FakeSigner(SIGNERS).sign(SIGNER, [{ ...content, fees }]);
  return made?.rawTransaction as Hex;
}

describe("a transaction that its caller signed, submitted again", () => {
  it("is the first one for its own API key, and a conflict for others and for other bytes", async () => {
    world = new World();
    const { node } = await world.startNode();
    world.holdBlocks();
    const [first, other] = [await signed(1n), await signed(2n)];
    const submit = (rawTransaction: Hex, owner: string) => node.api.submitSigned({ rawTransaction }, owner);
    const { txId } = await world.settle(submit(first, "shop"));
    expect(await world.settle(submit(first, "shop"))).toMatchObject({ outcome: "existing", txId });
    expect(await world.refusal(submit(first, "thief"))).toMatchObject({ code: "CONFLICT" });
    expect(await world.refusal(submit(other, "shop"))).toMatchObject({ code: "CONFLICT" });
    expect(world.rows()).toHaveLength(1);
  });
});
