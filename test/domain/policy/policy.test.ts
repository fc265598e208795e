import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import type { Address, Hex } from "../../../src/domain/lane.ts";
import { parsePolicies } from "../../../src/domain/policy/parse.ts";
import {
  type Asked,
  forbidden,
  isLimited,
  type Policy,
  policyFor,
  timeless,
} from "../../../src/domain/policy/policy.ts";
import { added, chargedHour, UNUSED, type Use } from "../../../src/domain/policy/use.ts";
import { forSigner, policiesOf } from "../../support/policies.ts";

const codec = createCodec();
const SIGNER: Address = `0x${"a".repeat(40)}`;
const TO: Address = `0x${"b".repeat(40)}`;
const NOON = new Date("2026-11-17T12:00:00Z");

function policyOf(said: object): Policy {
  const policy = policyFor(forSigner(SIGNER, said).signers, SIGNER);
  if (policy === null) throw new Error("there is no policy");
  return policy;
}

interface Wish extends Partial<Omit<Asked, "payload">> {
  readonly to?: Address | null;
  readonly data?: Hex;
  readonly use?: Use;
  readonly at?: Date;
}

/** The rule of a signer's policy that the transaction breaks; null if none. */
function ruleOf(said: object, wish: Wish = {}): string | null {
  const { to = TO, data = "0x", use = UNUSED, at = NOON, ...rest } = wish;
  const worst = { value: 1n, cost: 10n };
  const asked = { chainId: 1, worst, more: rest.worst ?? worst, about: "payload", ...rest } as const;
  const judges = [{ scope: "signer", policy: policyOf(said), use }] as const;
  return forbidden(judges, { ...asked, payload: { to, data } }, at)?.rule ?? null;
}

const usedUp = (hour: bigint, day: bigint): Use => ({
  hourMs: NOON.getTime(),
  hour: { value: hour, cost: hour },
  day: { value: day, cost: day },
});

describe("the policy of a signer", () => {
  it("replaces the policy for all signers", () => {
    const { signers } = policiesOf({ signers: { [SIGNER]: { chains: [1] }, "*": { chains: [2] } } });
    expect([SIGNER, TO].map((signer) => policyFor(signers, signer)?.chains)).toEqual([new Set([1]), new Set([2])]);
  });
});

describe("a rule of a policy", () => {
  it("about chains allows only the listed chains", () => {
    expect(ruleOf({ chains: [1, 10] })).toBeNull();
    expect(ruleOf({ chains: [10] })).toBe("signer.chains");
  });

  it("about receivers allows only the listed addresses", () => {
    expect(ruleOf({ to: [TO.toUpperCase().replace("0X", "0x")] })).toBeNull();
    expect(ruleOf({ to: [SIGNER] })).toBe("signer.to");
    expect(ruleOf({ to: [] })).toBe("signer.to");
    expect(ruleOf({ to: [TO] }, { to: null, data: "0x6000" })).toBe("signer.to");
    expect(ruleOf({ to: ["deploy"] }, { to: null, data: "0x6000" })).toBeNull();
  });

  it("about functions accepts selectors and signatures", () => {
    const erc20 = { selectors: ["transfer(address,uint256)", "0x095EA7B3"] };
    expect(ruleOf(erc20, { data: "0xa9059cbb00" })).toBeNull();
    expect(ruleOf(erc20, { data: "0x095ea7b3" })).toBeNull();
    expect(ruleOf(erc20, { data: "0xA9059CBB" })).toBeNull();
    expect(ruleOf(erc20, { data: "0xdeadbeef" })).toBe("signer.selectors");
    expect(ruleOf(erc20)).toBe("signer.selectors");
    expect(ruleOf({ selectors: ["0x"] })).toBeNull();
    expect(ruleOf({ selectors: ["0x"] }, { data: "0xa9" })).toBe("signer.selectors");
    expect(ruleOf(erc20, { to: null, data: "0xa9059cbb" })).toBe("signer.selectors");
    expect(ruleOf({ selectors: ["deploy"] }, { to: null, data: "0xa9059cbb" })).toBeNull();
  });

  it("about hours of the day uses UTC, and may cross midnight", () => {
    const at = (time: string) => ({ at: new Date(`2026-11-17T${time}:00Z`) });
    expect(ruleOf({ hours: "08:00-18:00" }, at("08:00"))).toBeNull();
    expect(ruleOf({ hours: "08:00-18:00" }, at("18:00"))).toBe("signer.hours");
    expect(ruleOf({ hours: "22:00-06:30" }, at("23:59"))).toBeNull();
    expect(ruleOf({ hours: "22:00-06:30" }, at("06:29"))).toBeNull();
    expect(ruleOf({ hours: "22:00-06:30" }, at("06:30"))).toBe("signer.hours");
  });

  it("about amounts limits the sum of the current hour and the current day", () => {
    const worst = { value: 5n, cost: 9n };
    expect(ruleOf({ maxValue: { perTransaction: "5" } }, { worst })).toBeNull();
    expect(ruleOf({ maxValue: { perTransaction: "4" } }, { worst })).toBe("signer.maxValue.perTransaction");
    expect(ruleOf({ maxCost: { perTransaction: "8" } }, { worst })).toBe("signer.maxCost.perTransaction");
    expect(ruleOf({ maxCost: { perHour: "20" } }, { worst, use: usedUp(11n, 0n) })).toBeNull();
    expect(ruleOf({ maxCost: { perHour: "20" } }, { worst, use: usedUp(12n, 0n) })).toBe("signer.maxCost.perHour");
    expect(ruleOf({ maxValue: { perDay: "20" } }, { worst, use: usedUp(0n, 16n) })).toBe("signer.maxValue.perDay");
  });

  // protects [Attacks] src/domain/policy/use.ts
  it("about amounts ignores the amounts of past hours and days", () => {
    const worst = { value: 5n, cost: 5n };
    const later = (ms: number) => new Date(NOON.getTime() + ms);
    const full = usedUp(10n, 10n);
    expect(ruleOf({ maxValue: { perHour: "10" } }, { worst, use: full, at: later(3_599_999) })).not.toBeNull();
    expect(ruleOf({ maxValue: { perHour: "10" } }, { worst, use: full, at: later(3_600_000) })).toBeNull();
    expect(ruleOf({ maxValue: { perDay: "10" } }, { worst, use: full, at: later(3_600_000) })).not.toBeNull();
    expect(ruleOf({ maxValue: { perDay: "10" } }, { worst, use: full, at: later(12 * 3_600_000) })).toBeNull();
    expect(ruleOf({ maxValue: { perHour: "10" } }, { worst, use: full, at: later(-3_600_000) })).not.toBeNull();
  });

  it("does not refuse an amount that was already charged", () => {
    const nothing = { value: 0n, cost: 0n };
    expect(ruleOf({ maxCost: { perHour: "1" } }, { more: nothing, use: usedUp(9n, 9n) })).toBeNull();
    const moved = { to: [SIGNER], selectors: ["0x"], hours: "00:00-01:00", chains: [7] };
    expect(ruleOf(moved, { about: "cost" })).toBeNull();
  });

  // protects [Attacks] src/domain/policy/policy.ts
  it("about arguments refuses call data that is truncated or wrongly padded", () => {
    const said = {
      signers: {
        [SIGNER]: {
          calls: [
            { abi: "erc20", function: "transfer", arguments: { to: { in: [TO] }, amount: { min: "1", max: "100" } } },
          ],
        },
      },
      abis: { erc20: ["function transfer(address to, uint256 amount) returns (bool)"] },
    };
    const policy = policyFor(policiesOf(said).signers, SIGNER) as Policy;
    const ruleFor = (data: Hex): string | undefined => {
      const worst = { value: 0n, cost: 0n };
      const asked = { chainId: 1, payload: { to: SIGNER, data }, worst, more: worst, about: "payload" } as const;
      return forbidden([{ scope: "signer", policy, use: UNUSED }], asked, NOON)?.rule;
    };
    const call = (to: Address, amount: bigint) => codec.encodeCall("transfer(address,uint256)", [to, `${amount}`]);
    expect(ruleFor(call(TO, 100n))).toBeUndefined();
    expect(ruleFor(call(TO, 101n))).toBe("signer.arguments.amount");
    expect(ruleFor(call(TO, 0n))).toBe("signer.arguments.amount");
    expect(ruleFor(call(SIGNER, 5n))).toBe("signer.arguments.to");
    expect(ruleFor("0xa9059cbb")).toBe("signer.arguments.to");
    expect(ruleFor(call(TO, 5n).replace("0xa9059cbb0", "0xa9059cbb1") as Hex)).toBe("signer.arguments.to");
    // Calldata one byte too short: the EVM reads zeros beyond its end, so a contract would read 1,280 and not 5.
    expect(ruleFor(call(TO, 1_280n).slice(0, -2) as Hex)).toBe("signer.arguments.amount");
    expect(ruleFor("0xdeadbeef")).toBeUndefined();
  });

  // protects [Attacks] src/domain/policy/policy.ts
  it("about an argument of a small integer type refuses higher bits, which a contract may cut off", () => {
    const level = { calls: [{ function: "setLevel(uint8 level)", arguments: { level: { min: "5" } } }] };
    const data = (word: bigint): Hex =>
      `${codec.functions("setLevel(uint8)")[0]?.selector ?? "0x"}${word.toString(16).padStart(64, "0")}`;
    expect(ruleOf(level, { data: data(5n) })).toBeNull();
    expect(ruleOf(level, { data: data(0x101n) })).toBe("signer.arguments.level");
  });
});

describe("a policy document", () => {
  it("applies the default policy if the signer or API key has no policy", () => {
    const policies = policiesOf({ signers: { [SIGNER]: {} }, keys: { "*": {} } });
    expect(isLimited(policies, SIGNER, null)).toBe(true);
    expect(isLimited(policies, TO, null)).toBe(false);
    expect(isLimited(policies, TO, "anybody")).toBe(true);
  });

  it("has a hash that identifies its content", () => {
    const one = policiesOf({ signers: {} });
    expect(one.hash).toBe(policiesOf({ signers: {} }).hash);
    expect(one.hash).not.toBe(policiesOf({ keys: {} }).hash);
  });

  it("is refused with a list of all mistakes and their paths", () => {
    const document = {
      signer: {},
      signers: {
        "0x12": {},
        [SIGNER]: { too: [], hours: "8-18", maxCost: { perHour: 5, perWeek: "1" }, chains: ["1"] },
      },
      keys: { a: { selectors: ["transfer("], calls: [{ abi: "none", function: "f()", arguments: {} }] }, b: [] },
    };
    const parsed = parsePolicies(document, codec);
    expect("mistakes" in parsed && parsed.mistakes.map((each) => each.split(" ")[0])).toEqual([
      "signer",
      "signers.0x12",
      `signers.${SIGNER}.too`,
      `signers.${SIGNER}.chains.0`,
      `signers.${SIGNER}.hours`,
      `signers.${SIGNER}.maxCost.perWeek`,
      `signers.${SIGNER}.maxCost.perHour`,
      "keys.a.calls.0.abi",
      "keys.a.selectors.0",
      "keys.b",
    ]);
    expect(parsePolicies([], codec)).toEqual({ mistakes: ["the document is not an object"] });
  });

  it("is refused if one signer has two policies", () => {
    const address = "0xa0Ee7A142d267C1f36714E4a8F75612F20a79720";
    const document = { signers: { [address]: { to: [] }, [address.toLowerCase()]: {} } };
    expect(parsePolicies(document, codec)).toEqual({
      mistakes: [`signers.${address.toLowerCase()} has a second policy under another spelling`],
    });
  });

  it("is refused if a rule is null, because a null rule would limit nothing", () => {
    expect(parsePolicies({ signers: null, keys: null, abis: null }, codec)).toEqual({
      mistakes: ["abis is not an object", "signers is not an object", "keys is not an object"],
    });
  });

  it.each([
    ["behind a tuple", "f((uint256,uint256) a, uint256 b)", "b"],
    ["behind an array of fixed length", "f(uint256[2] a, uint256 b)", "b"],
    ["of text", "f(string a)", "a"],
    ["that does not exist", "f(uint256 a)", "b"],
  ])("is refused if it limits an argument %s", (_, signature, name) => {
    const policy = { calls: [{ function: signature, arguments: { [name]: { max: "1" } } }] };
    const parsed = parsePolicies({ keys: { a: policy } }, codec);
    expect("mistakes" in parsed && parsed.mistakes).toHaveLength(1);
  });
});

describe("a limit per transaction", () => {
  it("holds for the whole worst case of a payload that adds to what was counted", () => {
    const change = { worst: { value: 6n, cost: 6n }, more: { value: 1n, cost: 1n } };
    expect(ruleOf({ maxValue: { perTransaction: "5" } }, change)).toBe("signer.maxValue.perTransaction");
    expect(ruleOf({ maxValue: { perTransaction: "6" } }, change)).toBeNull();
  });
});

describe("use of a limit", () => {
  const hoursBefore = (hours: number) => NOON.getTime() - hours * 3_600_000;
  const one = { value: 1n, cost: 1n };

  it("is charged to its latest hour if the clock went back", () => {
    expect(chargedHour(usedUp(1n, 1n), new Date(hoursBefore(3)))).toBe(NOON.getTime());
  });

  it("is corrected in the hour and day of the charge alone", () => {
    const use = usedUp(5n, 9n);
    expect(
      [0, 3, 24].map((hours) => added(use, hoursBefore(hours), one)).map(({ hour, day }) => [hour.value, day.value]),
    ).toEqual([
      [6n, 10n],
      [5n, 10n],
      [5n, 9n],
    ]);
  });
});

describe("a placeholder, which transfers nothing,", () => {
  it("is limited by what its signer may spend, and by nothing else", () => {
    const policy = policyOf({ to: [], maxCost: { perHour: "9" } });
    const worst = { value: 0n, cost: 10n };
    const asked = { chainId: 1, payload: { to: TO, data: "0x" }, worst, more: worst, about: "placeholder" } as const;
    const ruleFor = (scope: "signer" | "key", cost = 10n) =>
      forbidden([{ scope, policy, use: UNUSED }], { ...asked, more: { value: 0n, cost } }, NOON)?.rule;
    expect([ruleFor("signer"), ruleFor("signer", 9n), ruleFor("key")]).toEqual([
      ...["signer.maxCost.perHour", undefined, undefined],
    ]);
  });
});

describe("the rules of a policy that hold at any time", () => {
  it("are all but those of hours and of amounts used before", () => {
    const limit = { perTransaction: "1", perHour: "2", perDay: "3" };
    const policy = policyOf({ chains: [1], to: [TO], hours: "08:00-09:00", maxValue: limit, maxCost: limit });
    const alone = { perTransaction: 1n, perHour: null, perDay: null };
    expect(timeless(policy)).toEqual({ ...policy, hours: null, maxValue: alone, maxCost: alone });
  });
});
