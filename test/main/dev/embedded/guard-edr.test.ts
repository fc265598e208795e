import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DevAccount, type DevChain, startEmbeddedChain } from "../../../../src/main/dev/embedded/start-chain.ts";

const CALLS = ["eth_call", "eth_estimateGas", "debug_traceCall"];
const MOST = 2n ** 256n - 1n;
const CUT_PUSHES = ["0x73", `0x73${"ab".repeat(19)}`] as const;

/** Each of these requests once made EDR panic, which ends the process, or compute for hours. */
describe("the embedded chain does not crash on", () => {
  let chain: DevChain;
  let from: string;
  let to: string;

  beforeAll(async () => {
    chain = await startEmbeddedChain();
    [from, to] = chain.accounts.map(({ address }) => address) as [string, string];
  });

  afterAll(async () => {
    await chain.mine();
    await chain.stop();
  });

  test.each([
    { value: MOST },
    { value: 2n ** 255n },
    { gasPrice: 2n ** 128n - 1n },
    { gasPrice: 2n ** 113n, gas: 2n ** 15n },
    { maxPriorityFeePerGas: 2n ** 127n },
    { maxFeePerGas: 2n ** 127n, maxPriorityFeePerGas: 2n ** 104n },
    { gasPrice: 2n ** 103n, value: MOST },
  ])("a call with more value or gas cost than any account can have: %o", async (amounts: Record<string, bigint>) => {
    const call = Object.fromEntries(Object.entries(amounts).map(([name, value]) => [name, quantity(value)]));
    for (const method of CALLS) {
      await expect(chain.rpc(method, [{ from, to, ...call }, "latest"])).rejects.toMatchObject({
        code: -32000,
        message: expect.stringMatching(/insufficient funds/),
      });
    }
  });

  test("a call with a high gas price", async () => {
    const call = { from, to, gasPrice: quantity(2n ** 99n) };
    expect(await chain.rpc("eth_call", [call, "latest"])).toBe("0x");
  });

  test.each(CUT_PUSHES)("code that ends within a PUSH20: %s", async (data) => {
    for (const method of CALLS) {
      for (const call of [
        { from, data },
        { from, to: null, input: data },
      ]) {
        await expect(chain.rpc(method, [call, "latest"])).rejects.toMatchObject({
          code: 3,
          message: expect.stringMatching(/execution reverted: .*cut off in a PUSH20/),
        });
      }
    }
    const refused = { code: -32000, message: expect.stringMatching(/init code length is less/) };
    await expect(chain.rpc("eth_sendTransaction", [{ from, data }])).rejects.toMatchObject(refused);
    for (const value of [0n, 1n, 255n, 10n ** 18n]) {
      const signed = await sign({ data, value });
      await expect(chain.rpc("eth_sendRawTransaction", [signed])).rejects.toMatchObject(refused);
    }
    await expect(chain.rpc("hardhat_setCode", [to, data])).rejects.toMatchObject({ code: -32602 });
    const call = chain.rpc("eth_call", [{ from, to }, "latest", { [to]: { code: data } }]);
    await expect(call).rejects.toMatchObject({ code: -32602 });
  });

  test("code with a complete PUSH20, or data that only looks like truncated code", async () => {
    const whole = await sign({ data: `0x73${"ab".repeat(20)}` });
    const transfer = await sign({ data: "0x73", to: to as `0x${string}`, nonce: 1 });
    for (const signed of [whole, transfer]) {
      const hash = await chain.rpc("eth_sendRawTransaction", [signed]);
      await chain.mine();
      expect(await chain.rpc("eth_getTransactionReceipt", [hash])).toMatchObject({ status: "0x1" });
    }
  });

  test.each([
    ["evm_increaseTime", [quantity(2n ** 63n - 1n)]],
    ["evm_increaseTime", [1e19]],
    ["evm_increaseTime", ["9223372036854775808"]],
    ["evm_setNextBlockTimestamp", [quantity(2n ** 63n)]],
    ["evm_mine", [quantity(2n ** 63n)]],
    ["hardhat_mine", [quantity(2n ** 63n)]],
    ["hardhat_mine", ["0xffffff", "0xffffffffff"]],
    ["hardhat_mine", ["0x2", quantity(2n ** 63n)]],
  ])("a time beyond the chain's range: %s %j", async (method, params) => {
    await expect(chain.rpc(method, params)).rejects.toMatchObject({ code: -32602 });
  });

  test.each(["0xef01", "0xef0100", "0xef010000", `0xef0101${"00".repeat(20)}`])(
    "code that starts like an EIP-7702 delegation but is none: %s",
    async (code) => {
      await expect(chain.rpc("hardhat_setCode", [to, code])).rejects.toMatchObject({ code: -32602 });
      const call = chain.rpc("eth_call", [{ from, to }, "latest", { [to]: { code } }]);
      await expect(call).rejects.toMatchObject({ code: -32602 });
    },
  );

  test("a base fee at the limit of 64 bits", async () => {
    const set = (wei: bigint) => chain.rpc("hardhat_setNextBlockBaseFeePerGas", [quantity(wei)]);
    for (const wei of [2n ** 128n - 1n, 2n ** 99n, 2n ** 64n - 1n, 2n ** 60n]) {
      await expect(set(wei)).rejects.toMatchObject({ code: -32602 });
    }
    expect(await set(2n ** 60n - 1n)).toBe(true);
    await chain.mine(3);
    expect(await set(10n ** 9n)).toBe(true);
    await chain.mine(3);
  });

  test("a log filter up to a block that does not exist", async () => {
    for (const toBlock of ["0xffffffffff", quantity(2n ** 64n - 1n)]) {
      expect(await chain.rpc("eth_getLogs", [{ fromBlock: "0x0", toBlock }])).toEqual([]);
      expect(await chain.rpc("eth_newFilter", [{ fromBlock: "0x0", toBlock }])).toMatch(/^0x/);
    }
  });

  async function sign(fields: { data: `0x${string}`; to?: `0x${string}`; value?: bigint; nonce?: number }) {
    const fees = { gas: 100_000n, maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1n };
    const { privateKey } = chain.accounts[0] as DevAccount;
    return privateKeyToAccount(privateKey).signTransaction({ chainId: 31_337, nonce: 0, ...fees, ...fields });
  }
});

function quantity(value: bigint): string {
  return `0x${value.toString(16)}`;
}
