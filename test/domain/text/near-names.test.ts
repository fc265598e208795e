import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nearestName, unknownName } from "../../../src/domain/text/near-names.ts";

const CREATE = ["chainId", "signer", "requestId", "payload", "metadata"];
const RAW = ["to", "data", "value", "gas", "maxFeePerGas", "maxPriorityFeePerGas", "gasPrice", "accessList", "type"];

describe("the suggestion for an unknown name", () => {
  it.each([
    ["from", CREATE, "signer"],
    ["request_id", CREATE, "requestId"],
    ["Idempotency-Key", CREATE, "requestId"],
    ["chainid", CREATE, "chainId"],
    ["gasLimit", RAW, "gas"],
    ["input", RAW, "data"],
    ["calldata", RAW, "data"],
    ["callData", RAW, "data"],
    ["amount", RAW, "value"],
    ["vlaue", RAW, "value"],
    ["maxPriorityFee", RAW, "maxPriorityFeePerGas"],
    ["max_fee_per_gas", RAW, "maxFeePerGas"],
    ["gasprice", RAW, "gasPrice"],
  ])("is the known name that %s was probably meant to be", (name, known, meant) => {
    expect(nearestName(name, known)).toBe(meant);
  });

  it.each(["colour", "x", "", "foo", "__proto__", "constructor", "hasOwnProperty", "v".repeat(100_000)])(
    "is absent for %.12s, which resembles no known name",
    (name) => {
      expect(nearestName(name, RAW)).toBeNull();
    },
  );

  it("is never a name that is invalid at that place", () => {
    expect(nearestName("from", RAW)).toBeNull();
    expect(nearestName("signer", [])).toBeNull();
  });

  it("is one of the known names or absent, for any input", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        const near = nearestName(name, RAW);
        return near === null || RAW.includes(near);
      }),
    );
  });
});

describe("the error for an unknown name", () => {
  const complaint = "is not a known field";

  it("contains a suggestion in the message and as a field", () => {
    const refused = unknownName({ name: "from", path: "from", known: CREATE, complaint });
    expect(refused.message).toBe("from: is not a known field; did you mean `signer`?");
    expect(refused.extras).toEqual({ path: "from", hint: "did you mean `signer`?" });
  });

  it("states where a misplaced field belongs, even if it is misspelt", () => {
    const elsewhere = new Map([["value", "payload.value"]]);
    for (const name of ["value", "vlaue", "amount"]) {
      const { extras } = unknownName({ name, path: name, known: CREATE, complaint, elsewhere });
      expect(extras.hint).toBe("did you mean `payload.value`?");
    }
  });

  it("lists the valid names if none is similar", () => {
    const refused = unknownName({ name: "colour", path: "colour", known: CREATE, complaint });
    expect(refused.message).toBe("colour: is not a known field (known: chainId, signer, requestId, payload, metadata)");
    expect(refused.extras).toEqual({ path: "colour" });
  });
});
