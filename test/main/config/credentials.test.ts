import { describe, expect, it } from "vitest";
import { pools, showPools, showSignerNames, signerNames } from "../../../src/main/config/credentials.ts";

const A = `0x${"a".repeat(40)}` as const;
const B = `0x${"b".repeat(40)}` as const;

const parsed = (raw: unknown) => {
  const result = pools(raw);
  return "value" in result ? Object.fromEntries(result.value) : result.mistake;
};

describe("signer pools in the configuration", () => {
  it("are an object in a file or pairs in a variable, with addresses in any casing", () => {
    expect(parsed({ payouts: [A.toUpperCase().replace("0X", "0x"), B], refunds: B })).toEqual({
      payouts: [A, B],
      refunds: [B],
    });
    const said = `payouts=${A}+${B}, refunds=${B}`;
    expect(parsed(said)).toEqual({ payouts: [A, B], refunds: [B] });
    const result = pools(said);
    if ("value" in result) expect(showPools(result.value)).toBe(said);
  });

  it.each([
    ["payouts", "is not a list of pools (use payouts=0x…+0x…)"],
    [`payouts=${A},payouts=${B}`, "is not a list of pools (use payouts=0x…+0x…)"],
    [[A], "is not a list of pools (use payouts=0x…+0x…)"],
    [{}, "names no pool"],
    [{ payouts: [] }, "is wrong at payouts: needs at least one item"],
    [{ payouts: [A, A] }, "is wrong at payouts: is wrong at place 2: given before"],
    [{ payouts: ["0x12"] }, "is wrong at payouts: is wrong at place 1: an address is 0x and 40 hex digits"],
    [{ "no spaces": [A] }, "is wrong at a name: a pool's name has up to 64 letters, digits, . _ and -"],
  ])("are refused in one line if they have the form %j", (raw, mistake) => {
    expect(parsed(raw)).toBe(mistake);
  });

  it("have at most 256 signers", () => {
    const many = Array.from({ length: 257 }, (_, n) => `0x${n.toString(16).padStart(40, "0")}`);
    expect(parsed({ payouts: many.slice(1) })).toHaveProperty("payouts");
    expect(parsed({ payouts: many })).toBe("is wrong at payouts: has more than 256 signers");
  });
});

describe("names of signers in the configuration", () => {
  it("are read from a variable and from a file", () => {
    const names = {
      value: new Map([
        [A.toLowerCase(), "payouts-1"],
        [B.toLowerCase(), "payouts-2"],
      ]),
    };
    expect(signerNames(`payouts-1=${A}, payouts-2=${B}`)).toEqual(names);
    expect(signerNames({ "payouts-1": A, "payouts-2": B })).toEqual(names);
    expect(showSignerNames(new Map([[A as `0x${string}`, "payouts-1"]]))).toBe(`payouts-1=${A}`);
  });

  it.each([
    ["payouts-1", "is not a list of names (use payouts-1=0x…,payouts-2=0x…)"],
    [`a=${A},a=${B}`, "is not a list of names (use payouts-1=0x…,payouts-2=0x…)"],
    [[A], "is not a list of names (use payouts-1=0x…,payouts-2=0x…)"],
    [{}, "names no signer"],
    [`a=${A},b=${A}`, "is wrong at b: its signer has two names"],
    [`a=${A}+${B}`, "is wrong at a: it names several signers"],
    [{ "a b": A }, "is wrong at a name: a name has up to 64 letters, digits, . _ and -"],
  ])("are refused: %j", (raw, mistake) => {
    expect(signerNames(raw as never)).toEqual({ mistake });
  });
});
