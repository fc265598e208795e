import { describe, expect, it } from "vitest";
import { type Ceilings, ceilingsOf } from "../../../src/domain/fees/ceilings.ts";
import {
  beyondBounds,
  beyondMessageBounds,
  DECLARATIONS,
  type Declaration,
  identityOf,
  type SignedBefore,
  secondPayload,
  type ToSign,
} from "../../../src/domain/keys/signing.ts";
import type { Address } from "../../../src/domain/lane.ts";
import type { MessageToSign } from "../../../src/domain/messages/message.ts";
import type { Policy } from "../../../src/domain/policy/policy.ts";
import { MESSAGES, RULES } from "../../support/messages.ts";
import { policiesOf } from "../../support/policies.ts";

const GWEI = 1_000_000_000n;
const SIGNER: Address = `0x${"11".repeat(20)}`;
const RECEIVER: Address = `0x${"22".repeat(20)}`;
const TRANSFER: ToSign = {
  ...{ chainId: 1, nonce: 5, to: RECEIVER, data: "0x", value: 7n, gas: 21_000n, accessList: [] },
  fees: { type: "eip1559", maxFeePerGas: 2n * GWEI, maxPriorityFeePerGas: GWEI },
};
const NOTHING: ToSign = { ...TRANSFER, to: SIGNER, value: 0n };
const DEARER = { type: "eip1559", maxFeePerGas: 3n * GWEI, maxPriorityFeePerGas: 2n * GWEI } as const;
const CEILINGS: Ceilings = ceilingsOf(1, {
  maxFeeWei: 100n * GWEI,
  maxGasCostWei: 10n ** 16n,
  maxCostWei: 10n ** 18n,
});
const UNLIMITED = { perTransaction: null, perHour: null, perDay: null };
const OPEN: Policy = {
  ...{
    chains: null,
    to: null,
    selectors: null,
    hours: null,
    arguments: new Map(),
    requireApproval: null,
    messages: null,
  },
  ...{ maxValue: UNLIMITED, maxCost: UNLIMITED },
};

function judged(asked: ToSign, policy: Partial<Policy> | null = null): string | null {
  const policies = new Map(policy === null ? [] : [[SIGNER as string, { ...OPEN, ...policy }] as const]);
  return beyondBounds({ ceilings: new Map([[1, CEILINGS]]), policies }, SIGNER, asked);
}

describe("a key holder, for any request,", () => {
  // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/serve-signer.ts
  it("refuses to sign for a chain that is not configured", () => {
    expect(judged(TRANSFER)).toBeNull();
    expect(judged({ ...TRANSFER, chainId: 5 })).toMatch(/chain 5 is not one of those/);
  });

  it.each<[string, Partial<ToSign>, RegExp]>([
    ["of the fee per gas", { fees: { ...DEARER, maxFeePerGas: 101n * GWEI } }, /FENCEPOST_MAX_FEE_GWEI/],
    ["of the tip", { fees: { ...DEARER, maxPriorityFeePerGas: 101n * GWEI } }, /FENCEPOST_MAX_FEE_GWEI/],
    ["of a gas price", { fees: { type: "legacy", gasPrice: 101n * GWEI } }, /FENCEPOST_MAX_FEE_GWEI/],
    ["of gas times fee", { gas: 10_000_000n }, /FENCEPOST_MAX_GAS_COST_WEI/],
    ["of value and gas", { value: 10n ** 18n }, /FENCEPOST_MAX_COST_WEI/],
    // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/serve-signer.ts
  ])("refuses to sign above the ceiling %s, for any declared reason", (_, over, words) => {
    for (const because of [undefined, "again", "reprice", "replace", "shift-down"] as const)
      expect(judged({ ...TRANSFER, ...over, because })).toMatch(words);
  });

  it.each<[string, Partial<Policy>, RegExp]>([
    ["another chain", { chains: new Set([5]) }, /signer\.chains/],
    ["another receiver", { to: new Set([SIGNER]) }, /signer\.to/],
    ["another function", { selectors: new Set(["0xa9059cbb"]) }, /signer\.selectors/],
    ["more value", { maxValue: { ...UNLIMITED, perTransaction: 6n } }, /signer\.maxValue\.perTransaction/],
    ["more cost", { maxCost: { ...UNLIMITED, perTransaction: 42_000n * GWEI } }, /signer\.maxCost\.perTransaction/],
    // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/serve-signer.ts
  ])("refuses to sign a payload that the signer's policy forbids: %s", (_, policy, words) => {
    for (const because of [undefined, ...DECLARATIONS.filter((each) => each !== "cancel" && each !== "placeholder")])
      expect(judged({ ...TRANSFER, because }, policy)).toMatch(words);
  });

  it("does not check hourly limits, daily limits or hours of the day", () => {
    const used = { perTransaction: null, perHour: 0n, perDay: 0n };
    expect(judged(TRANSFER, { maxValue: used, maxCost: used, hours: { from: 600, to: 601 } })).toBeNull();
  });

  // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/payload-memory.ts
  it.each(["cancel", "placeholder"] as const)(
    "refuses to sign a payload declared as %s that is not an empty transfer to the signer",
    (because) => {
      expect(judged({ ...NOTHING, because })).toBeNull();
      const entry = { address: RECEIVER, storageKeys: [] };
      for (const other of [{ to: RECEIVER }, { value: 1n }, { data: "0x00" }, { accessList: [entry] }, { to: null }])
        expect(judged({ ...NOTHING, ...other, because } as ToSign)).toMatch(/no transfer of nothing/);
    },
  );

  it("checks the cost of a cancel, but not its receiver", () => {
    const cancel = { ...NOTHING, because: "cancel" } as const;
    expect(judged(cancel, { to: new Set([RECEIVER]), selectors: new Set() })).toBeNull();
    expect(judged(cancel, { maxCost: { ...UNLIMITED, perTransaction: 1n } })).toMatch(/maxCost/);
  });
});

describe("a request to sign a second payload for a nonce", () => {
  const before: SignedBefore = { payloads: [identityOf(TRANSFER)], hasFirst: true };
  const result = (asked: ToSign, known = before) => secondPayload(known, asked, identityOf(asked));
  const reprice = { ...TRANSFER, fees: DEARER };
  const other = { ...TRANSFER, value: 8n };

  it("is accepted if the payload equals the first", () => {
    expect(result(TRANSFER)).toBeNull();
    expect(result({ ...TRANSFER, because: "reprice" })).toBeNull();
  });

  it.each<[Declaration | undefined, "another price" | "another content", "signed" | "undeclared" | "refused"]>([
    [undefined, "another price", "undeclared"],
    [undefined, "another content", "undeclared"],
    ["reprice", "another price", "signed"],
    ["reprice", "another content", "refused"],
    ["replace", "another content", "signed"],
    ["cancel", "another content", "signed"],
    ["placeholder", "another content", "signed"],
    ["shift-down", "another content", "signed"],
    ["again", "another price", "signed"],
    ["again", "another content", "signed"],
    // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/payload-memory.ts
  ])("declared as %s, with %s, is %s", (because, what, expected) => {
    const refusal = result({ ...(what === "another price" ? reprice : other), because });
    expect(refusal === null ? "signed" : refusal.undeclared ? "undeclared" : "refused").toBe(expected);
  });

  it.each<[string, Partial<ToSign>]>([
    ["receiver", { to: SIGNER }],
    ["value", { value: 8n }],
    ["data", { data: "0x01" }],
    ["access list", { accessList: [{ address: RECEIVER, storageKeys: [] }] }],
    // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/payload-memory.ts
  ])("is refused if it is declared as a reprice but has another %s", (_, change) => {
    expect(result({ ...reprice, ...change, because: "reprice" })?.message).toMatch(/declared as reprice, but/);
  });

  it("is accepted as a reprice if only a later cancel is remembered", () => {
    const cancelled = { payloads: [identityOf(NOTHING)], hasFirst: false };
    expect(result({ ...TRANSFER, because: "reprice" }, cancelled)).toBeNull();
  });
});

describe("a key holder, asked to sign a message,", () => {
  const rules = policiesOf({ signers: { [SIGNER]: { messages: RULES } } }).signers;
  const policy = rules.get(SIGNER) as Policy;
  const [PERSONAL] = MESSAGES as readonly [MessageToSign];
  const refusedBy = (asked: MessageToSign, own: Policy | null) => {
    const policies = own && new Map([[SIGNER as string, own]]);
    return beyondMessageBounds({ ceilings: new Map([[1, CEILINGS]]), policies }, SIGNER, asked);
  };

  // protects [Signers] src/domain/keys/signing.ts, src/adapters/evm/signers/process/serve-signer.ts
  it("signs what a rule of the signer allows, and nothing without one", () => {
    for (const asked of MESSAGES) {
      expect(refusedBy(asked, policy)).toBeNull();
      expect(refusedBy(asked, { ...policy, messages: null })).toMatch(/no rule .*\(signer\.messages\)/);
      expect(refusedBy(asked, null)).toMatch(/no rule/);
    }
  });

  it("refuses chains that are not configured, or that the policy excludes", () => {
    expect(refusedBy({ ...PERSONAL, chainId: 5 }, policy)).toMatch(/chain 5 is not one of those/);
    expect(refusedBy(PERSONAL, { ...policy, chains: new Set([5]) })).toMatch(/chain 1 \(signer\.chains\)/);
    expect(refusedBy(PERSONAL, { ...policy, hours: { from: 0, to: 0 } }), "the hour is the database's").toBeNull();
  });
});
