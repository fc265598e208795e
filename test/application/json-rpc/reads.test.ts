/**
 * Tests which requests `/rpc` answers from the lane's own state, which it passes on to the chain, and which it refuses.
 */
import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { call, RpcFace, STRANGER, transaction } from "../../support/json-rpc.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { CHAIN_ID, SIGNER, SIGNERS, TO, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let entry: WorldNode;
let rpc: RpcFace;
afterEach(() => world.close());

async function start(options: WorldOptions = {}): Promise<void> {
  world = new World(options);
  entry = await world.startNode();
  rpc = new RpcFace(world, entry);
}

interface Shown {
  readonly hash: string;
  readonly blockNumber: string | null;
  readonly nonce: string;
}

describe("JSON-RPC reads answered by Fencepost itself", () => {
  it("return the chain id, and the signers as accounts", async () => {
    await start();
    expect((await rpc.call("eth_chainId")).result).toBe(`0x${CHAIN_ID.toString(16)}`);
    expect((await rpc.call("net_version", [], { url: `/rpc/${CHAIN_ID}` })).result).toBe(String(CHAIN_ID));
    for (const method of ["eth_accounts", "eth_requestAccounts"])
      expect((await rpc.call<string[]>(method)).result?.toSorted()).toEqual([...SIGNERS].sort());
  });

  it("return the lane's next nonce as the pending count", async () => {
    await start();
    const counts = async (address: string) => {
      const asked = ["pending", "latest"].map((tag) => rpc.call("eth_getTransactionCount", [address, tag]));
      return (await Promise.all(asked)).map(({ result }) => result);
    };
    expect(await counts(SIGNER)).toEqual(["0x0", "0x0"]);
    world.holdBlocks();
    await rpc.send();
    await rpc.send();
    expect(await counts(SIGNER)).toEqual(["0x2", "0x0"]);
    expect(await counts(STRANGER)).toEqual(["0x0", "0x0"]);
    world.releaseBlocks();
    await world.allSettled(2);
    expect(await counts(SIGNER)).toEqual(["0x2", "0x2"]);
  });

  it("return the pending count even if the chain does not respond", async () => {
    await start();
    await rpc.send();
    entry.faults.inject({ kind: "unavailable" });
    expect((await rpc.call("eth_getTransactionCount", [SIGNER, "pending"])).result).toBe("0x1");
    expect((await rpc.call("eth_getTransactionCount", [SIGNER, "latest"])).error?.code).toBe(-32002);
  });

  // protects [JSON-RPC] src/adapters/http/rpc/reads.ts, src/application/operations/json-rpc.ts
  it("return a transaction by its hash before the chain returns it", async () => {
    await start();
    const heal = entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    const { result: hash } = await rpc.send();
    const shown = (await rpc.call<Shown>("eth_getTransactionByHash", [hash])).result;
    expect(shown).toMatchObject({ hash, from: SIGNER, to: TO, nonce: "0x0", value: "0x1", blockNumber: null });
    expect(shown).toMatchObject({ type: "0x2", r: expect.any(String), s: expect.any(String), v: expect.any(String) });
    heal();
    await world.allSettled(1);
    expect((await rpc.call<Shown>("eth_getTransactionByHash", [hash])).result?.blockNumber).toMatch(/^0x/);
    expect((await rpc.call("eth_getTransactionByHash", [`0x${"ab".repeat(32)}`])).result).toBeNull();
    expect((await rpc.call("eth_getTransactionByHash", ["0x12"])).error).toMatchObject({ code: -32602 });
  });

  // protects [JSON-RPC] src/adapters/http/rpc/reads.ts, src/application/operations/json-rpc.ts
  it("return a transaction also by the hash of a replaced attempt", async () => {
    await start();
    const ops = new OperatedWorld(world);
    world.holdBlocks();
    const { result: first } = await rpc.send();
    const [row] = world.rows();
    await world.until(() => ops.row(row?.txId ?? "").subState === "BROADCAST");
    await ops.act(entry, "reprice", {
      txId: row?.txId ?? "",
      request: { maxFeePerGas: "40000000000", maxPriorityFeePerGas: "2000000000" },
    });
    await world.until(() => ops.row(row?.txId ?? "").attempts.length === 2);
    world.releaseBlocks();
    await world.allSettled(1);
    expect((await rpc.call<Shown>("eth_getTransactionByHash", [first])).result).toMatchObject({
      hash: first,
      nonce: "0x0",
    });
    expect((await rpc.call("eth_getTransactionReceipt", [first])).result).toBeNull();
    const own = (await rpc.call("fencepost_getTransaction", [first])).result;
    expect(own).toMatchObject({
      txId: row?.txId,
      state: "CONFIRMED",
      attempts: [{ txHash: first }, {}],
      history: expect.any(Array),
    });
    expect((await rpc.call("fencepost_getTransaction", [row?.txId])).result).toEqual(own);
    expect((await rpc.call("fencepost_getTransaction", [`0x${"ab".repeat(32)}`])).result).toBeNull();
    expect((await rpc.call("fencepost_getTransaction", [7])).error).toMatchObject({ code: -32602 });
  });
});

describe("JSON-RPC methods forwarded to the chain", () => {
  it("return the chain's results and errors, also if the client sends no params", async () => {
    await start();
    expect((await rpc.call("eth_blockNumber")).result).toMatch(/^0x/);
    expect((await rpc.call("web3_clientVersion", [])).result).toMatch(/^Geth/);
    expect((await rpc.call("eth_nonsense", [])).error).toMatchObject({ code: -32601 });
  });

  it.each([
    ...["personal_unlockAccount", "admin_peers", "debug_traceTransaction", "miner_start", "engine_newPayloadV3"],
    ...["wallet_sendTransaction", "wallet_addEthereumChain", "eth_sign", "eth_signTransaction", "eth_signTypedData"],
    ...[
      "eth_sendBundle",
      "eth_sendPrivateTransaction",
      "eth_resend",
      "eth_submitWork",
      "eth_subscribe",
      "account_signData",
    ],
    ...[
      "klay_sendTransaction",
      "kaia_sendTransaction",
      "eea_sendRawTransaction",
      "zks_sendRawTransactionWithDetailedOutput",
    ],
    ...[
      "istanbul_propose",
      "perm_addAccountsToAllowlist",
      "plugins_reloadPluginConfig",
      "txpool_content",
      "rpc_modules",
    ],
    ...["eth_pendingTransactions", "eth_nonsense", "net_listening", "eth_getBalance ", "eth_getbalance"],
    ...["hardhat_impersonateAccount", "anvil_setBalance", "evm_mine", "clique_propose", "parity_setEngineSigner"],
    ...[
      "PERSONAL_sign",
      "Eth_sign",
      "ETH_SENDTRANSACTION",
      "eth_sendtransaction",
      "eth sign",
      "eth_sign\n",
      "__proto__",
      "toString",
      "",
    ],
    // protects [Attacks] src/domain/chain/rpc-methods.ts, src/adapters/http/rpc/reads.ts
  ])("do not include %j", async (method) => {
    await start();
    const asked: string[] = [];
    entry.rpc.passOn = async (name) => {
      asked.push(name);
      return { kind: "result", result: null };
    };
    expect((await rpc.call(method, [SIGNER, "0x00"])).error).toMatchObject({ code: -32601 });
    expect(asked).toEqual([]);
  });

  it("include every read of viem, ethers, web3.py, web3.js and cast", async () => {
    await start();
    const asked: string[] = [];
    entry.rpc.passOn = async (name) => {
      asked.push(name);
      return { kind: "result", result: "0x1" };
    };
    const reads = [
      ...[
        "eth_blockNumber",
        "eth_call",
        "eth_estimateGas",
        "eth_gasPrice",
        "eth_maxPriorityFeePerGas",
        "eth_feeHistory",
      ],
      ...[
        "eth_blobBaseFee",
        "eth_getBalance",
        "eth_getCode",
        "eth_getStorageAt",
        "eth_getProof",
        "eth_createAccessList",
      ],
      ...[
        "eth_getBlockByNumber",
        "eth_getBlockByHash",
        "eth_getBlockReceipts",
        "eth_getTransactionReceipt",
        "eth_getLogs",
      ],
      ...["eth_getBlockTransactionCountByNumber", "eth_getTransactionByBlockNumberAndIndex", "eth_simulateV1"],
      ...["eth_newFilter", "eth_newBlockFilter", "eth_getFilterChanges", "eth_getFilterLogs", "eth_uninstallFilter"],
      ...["eth_syncing", "web3_clientVersion"],
    ];
    for (const method of reads) expect((await rpc.call(method, [])).result).toBe("0x1");
    expect(asked).toEqual(reads);
  });

  // protects [Attacks] src/domain/chain/rpc-methods.ts, src/adapters/http/rpc/reads.ts
  it("include the methods listed in FENCEPOST_RPC_METHODS", async () => {
    await start();
    const asked: string[] = [];
    entry.rpc.passOn = async (name) => {
      asked.push(name);
      return { kind: "result", result: "0x1" };
    };
    const open = new RpcFace(world, entry, {
      rpc: { foreignRaw: "refuse", keyInPath: false, methods: ["zks_getL1BatchDetails"] },
    });
    expect((await open.call("zks_getL1BatchDetails", [1])).result).toBe("0x1");
    expect((await open.call("zks_getBridgeContracts")).error).toMatchObject({
      code: -32601,
      message: expect.stringContaining("FENCEPOST_RPC_METHODS"),
    });
    expect((await rpc.call("zks_getL1BatchDetails", [1])).error?.code).toBe(-32601);
    expect(asked).toEqual(["zks_getL1BatchDetails"]);
  });

  it.each([
    ["1,001 addresses", { address: Array.from({ length: 1_001 }, () => TO) }],
    ["1,001 topics", { topics: [null, Array.from({ length: 1_001 }, () => `0x${"0".repeat(64)}`)] }],
    [
      "1,001 of both together",
      {
        address: Array.from({ length: 501 }, () => TO),
        topics: Array.from({ length: 500 }, () => `0x${"0".repeat(64)}`),
      },
    ],
    ["one address that is no address", { address: "0x".padEnd(100_000, "0") }],
    ["10,001 blocks", { fromBlock: "0x1", toBlock: "0x2711" }],
    ["10,001 blocks up to the newest", { fromBlock: "0x1" }],
    ["all blocks", { fromBlock: "earliest", toBlock: "safe" }],
    ["all blocks, by a misspelt name that geth accepts", { fromblock: "0x0" }],
    ["a block that is none", { fromBlock: { blockNumber: "0x0" } }],
    ["all blocks beside the hash of one", { blockHash: `0x${"ab".repeat(32)}`, fromBlock: "0x0", toBlock: "0x2711" }],
    ["all blocks beside a hash that is none", { blockHash: "", fromBlock: "0x0" }],
    ["a block by a hash that is none", { blockHash: "" }],
    // protects [Attacks] src/adapters/http/rpc/log-filters.ts
  ])("do not include calls with a log filter that names or covers %s", async (_, filter) => {
    await start();
    const asked: string[] = [];
    entry.rpc.passOn = async (name) => {
      asked.push(name);
      return { kind: "result", result: { number: "0x2711" } };
    };
    for (const method of ["eth_getLogs", "eth_newFilter"]) {
      const { error } = await rpc.call(method, [filter]);
      expect(error).toMatchObject({ code: -32602, data: { path: expect.stringMatching(/^params\.0/) } });
    }
    expect((await rpc.ask({ ...call("eth_getLogs"), params: filter })).error?.code).toBe(-32602);
    expect(asked.filter((name) => name !== "eth_getBlockByNumber")).toEqual([]);
  });

  it.each([
    { fromBlock: "0x1", toBlock: "0x2710" },
    { fromBlock: "0x2" },
    { address: Array.from({ length: 1_000 }, () => TO) },
    { blockHash: `0x${"ab".repeat(32)}` },
    { fromBlock: "finalized", toBlock: "latest" },
    { topics: [[], null] },
    {},
  ])("include calls with a log filter within the limits: %j", async (filter) => {
    await start();
    const asked: string[] = [];
    entry.rpc.passOn = async (name) => {
      asked.push(name);
      return { kind: "result", result: { number: "0x2711" } };
    };
    expect((await rpc.call("eth_getLogs", [filter])).error).toBeUndefined();
    expect(asked.at(-1)).toBe("eth_getLogs");
  });

  // protects [Attacks] src/adapters/http/rpc/answer-packet.ts, src/adapters/http/rpc/reads.ts
  it("end with an error in time if the chain hangs", async () => {
    await start();
    entry.rpc.passOn = () => new Promise(() => undefined);
    const before = world.clock.monotonicMs();
    const [slow, quick] = await rpc.ask<readonly { error?: { code: number }; result?: unknown }[]>([
      call("eth_blockNumber"),
      call("eth_chainId"),
    ]);
    expect(world.clock.monotonicMs() - before).toBeLessThan(8_000);
    expect(slow?.error?.code).toBe(-32002);
    expect(quick?.result).toBeDefined();
  });

  // protects [Attacks] src/adapters/http/rpc/answer-packet.ts, src/adapters/http/rpc/reads.ts
  it("are limited in total response size per batch", async () => {
    await start();
    const large = "0".repeat(7 * 1024 * 1024);
    entry.rpc.passOn = async () => ({ kind: "result", result: large });
    const answers = await rpc.ask<readonly { error?: { message: string } }[]>(
      Array.from({ length: 20 }, () => call("eth_getLogs", [{}])),
    );
    expect(answers).toHaveLength(20);
    expect(answers.filter(({ error }) => error === undefined).length).toBeLessThan(6);
    expect(answers.at(-1)?.error?.message).toMatch(/^response too large/);
  });
});

describe("a JSON-RPC batch or request", () => {
  it("gets one response per call, in order", async () => {
    await start();
    const batch = [
      { jsonrpc: "2.0", id: "a", method: "eth_chainId" },
      { jsonrpc: "2.0", id: 7, method: "eth_sendTransaction", params: [transaction({ value: "0x1" })] },
      { jsonrpc: "2.0", id: 8, method: "eth_sendTransaction", params: [{ to: TO }] },
      { jsonrpc: "2.0", id: 9, method: "eth_sendTransaction", params: [transaction({ value: "0x2" })] },
      { jsonrpc: "1.0", id: 10, method: "eth_chainId" },
      { jsonrpc: "2.0", method: "eth_sendTransaction", params: [transaction({ value: "0x3" })] },
      { jsonrpc: "2.0", id: 11, method: "eth_chainId", params: "none" },
      null,
    ];
    const answers = await rpc.ask<readonly { id: unknown; result?: string; error?: { code: number } }[]>(batch);
    expect(answers.map(({ id }) => id)).toEqual(["a", 7, 8, 9, 10, null, 11, null]);
    expect(answers.map(({ error }) => error?.code)).toEqual([
      ...[undefined, undefined, -32602, undefined, -32600, -32600, -32600, -32600],
    ]);
    expect(world.rows().map(({ payload: { value } }) => value)).toEqual([1n, 2n]);
    expect(world.rows().map(({ attempts }) => attempts[0]?.txHash)).toEqual([answers[1]?.result, answers[3]?.result]);
  });

  it("allocates nonces for one signer in the order of its calls", async () => {
    await start();
    const batch = Array.from({ length: 40 }, (_, at) =>
      call("eth_sendTransaction", [
        transaction({ value: `0x${(at + 1).toString(16)}`, gas: at % 2 === 0 ? "0x5208" : undefined }),
      ]),
    );
    const answers = await rpc.ask<readonly { result?: string }[]>(batch);
    expect(answers.every(({ result }) => result !== undefined)).toBe(true);
    expect(world.rows().map(({ payload: { value } }) => value)).toEqual(batch.map((_, at) => BigInt(at + 1)));
  });

  it("may have up to a thousand calls", async () => {
    await start();
    const many = Array.from({ length: 1_001 }, () => call("eth_sendTransaction", [transaction()]));
    const answers = await rpc.ask<readonly { error?: { code: number } }[]>(many);
    expect(answers).toHaveLength(1_001);
    expect(new Set(answers.map(({ error }) => error?.code))).toEqual(new Set([-32600]));
    // Answering each item of a far too large batch with an error would make the response many times as large as the
    // request.
    const tiny = `[${"0,".repeat(1_000_000)}0]`;
    expect((await world.settle(rpc.post(tiny))).text.length).toBeLessThan(1_000);
    expect((await rpc.ask([])).error?.code).toBe(-32600);
    expect(world.rows()).toEqual([]);
  });

  it.each([
    ["{", -32700],
    ["", -32700],
    ['"eth_chainId"', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[{"__proto__":1}]}', -32600],
  ])("is refused with status 200 and a JSON-RPC error code if its body is %j", async (body, code) => {
    await start();
    const { status, text } = await world.settle(rpc.post(body));
    expect([status, JSON.parse(text).error.code]).toEqual([200, code]);
  });

  it("is refused if it names a chain that is not served", async () => {
    await start();
    expect((await rpc.call("eth_chainId", [], { url: "/rpc/1" })).error?.code).toBe(4901);
    expect((await rpc.send({}, { url: "/rpc/1" })).error?.code).toBe(4901);
    expect((await rpc.call("eth_blockNumber", [], { url: "/rpc/1" })).error?.code).toBe(4901);
    expect((await rpc.call("eth_chainId", [], { url: "/rpc/mainnet" })).error?.code).toBe(-32602);
    const chains = [1, 10].map((chainId) => ({
      chainId,
      reachable: true,
      head: 1,
      headSince: null,
      signersAway: 0,
      troubles: [],
    }));
    const several = new RpcFace(world, entry, {
      api: { ...entry.node.api, readiness: async () => ({ ready: true, database: true, chains, draining: false }) },
    });
    expect((await several.call("eth_chainId")).error?.message).toContain("/rpc/{chainId}");
    expect((await several.call("eth_chainId", [], { url: "/rpc/10" })).result).toBe("0xa");
  });
});

it("JSON-RPC returns a transaction of any type in the standard format", async () => {
  const codec = createCodec();
  const { privateKeyToAccount } = await import("viem/accounts");
  const account = privateKeyToAccount(`0x${"11".repeat(32)}`);
  const common = { chainId: 1, nonce: 3, to: TO, value: 5n, gas: 21_000n } as const;
  const raws = await Promise.all([
    account.signTransaction({ ...common, type: "legacy", gasPrice: 7n }),
    account.signTransaction({
      ...common,
      type: "eip2930",
      gasPrice: 7n,
      accessList: [{ address: TO, storageKeys: [] }],
    }),
    account.signTransaction({ ...common, type: "eip1559", maxFeePerGas: 9n, maxPriorityFeePerGas: 1n, data: "0xab" }),
    account.signTransaction({
      ...common,
      type: "eip7702",
      maxFeePerGas: 9n,
      maxPriorityFeePerGas: 1n,
      authorizationList: [await account.signAuthorization({ address: TO, chainId: 1, nonce: 4 })],
    }),
  ]);
  const shown = await Promise.all(raws.map((raw) => codec.transactionObject(raw)));
  const own = {
    from: account.address.toLowerCase(),
    to: TO,
    nonce: "0x3",
    value: "0x5",
    gas: "0x5208",
    blockHash: null,
  };
  expect(shown).toMatchObject([
    { ...own, type: "0x0", gasPrice: "0x7", chainId: "0x1", v: expect.stringMatching(/^0x2[56]$/) },
    { ...own, type: "0x1", gasPrice: "0x7", accessList: [{ address: TO, storageKeys: [] }] },
    {
      ...own,
      type: "0x2",
      maxFeePerGas: "0x9",
      maxPriorityFeePerGas: "0x1",
      input: "0xab",
      yParity: expect.stringMatching(/^0x[01]$/),
    },
    { ...own, type: "0x4", authorizationList: [{ address: TO, chainId: "0x1", nonce: "0x4", r: expect.any(String) }] },
  ]);
  await expect(codec.transactionObject("0x02")).rejects.toThrow("is not a signed transaction");
});
