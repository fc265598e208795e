import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import type { CreateRequest } from "../../../src/application/api.ts";
import { normalise, parseChainId } from "../../../src/application/requests/normalise.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Intent } from "../../../src/domain/transaction/transaction.ts";
import type { Codec } from "../../../src/ports/codec.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";

const SIGNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const TO = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const codec = createCodec();
const entropy = createSeededEntropy(5);

function intentOf(request: CreateRequest, chainIds: readonly number[] = [1]): Intent {
  return normalise({ codec, entropy, chainIds }, request);
}

function request(overrides: Record<string, unknown> = {}): CreateRequest {
  return { signer: SIGNER, payload: { to: TO }, ...overrides };
}

/** Returns the path that the validation error names; throws if there is no error. */
function complaint(input: unknown): string | undefined {
  try {
    intentOf(input as CreateRequest);
  } catch (error) {
    expect(error).toBeInstanceOf(FencepostError);
    expect((error as FencepostError).code).toBe("INVALID_REQUEST");
    return (error as FencepostError).extras.path;
  }
  throw new Error("it was accepted");
}

describe("a request that is not an object", () => {
  it.each([null, undefined, 5, "text", true, [], [request()]])("is refused as a whole: %j", (input) => {
    expect(complaint(input)).toBe("");
  });
});

describe("a create request", () => {
  it.each([
    ["unknown", request({ colour: "red" }), "colour"],
    ["nonce negative", request({ nonce: -1 }), "nonce"],
    ["nonce null", request({ nonce: null }), "nonce"],
    ["nonce beyond what is ever used", request({ nonce: Number.MAX_SAFE_INTEGER }), "nonce"],
    [
      "unknown, by an ill-famed name",
      JSON.parse(`{"signer":"${SIGNER}","payload":{"to":"${TO}"},"__proto__":{}}`),
      "__proto__",
    ],
    ["signer missing", { payload: { to: TO } }, "signer"],
    ["signer null", request({ signer: null }), "signer"],
    ["signer a number", request({ signer: 5 }), "signer"],
    ["signer too short", request({ signer: "0x1234" }), "signer"],
    ["signer without 0x", request({ signer: SIGNER.slice(2) }), "signer"],
    ["signer with a bad checksum", request({ signer: SIGNER.replace("9Fd", "9fd") }), "signer"],
    ["signer as an ENS name", request({ signer: "vitalik.eth" }), "signer"],
    ["payload missing", { signer: SIGNER }, "payload"],
    ["payload null", request({ payload: null }), "payload"],
    ["payload an array", request({ payload: [{ to: TO }] }), "payload"],
    ["payload a string", request({ payload: "0x" }), "payload"],
    ["metadata an array", request({ metadata: [1] }), "metadata"],
    ["metadata a string", request({ metadata: "x" }), "metadata"],
    ["metadata over 8 KiB", request({ metadata: { x: "y".repeat(8 * 1024) } }), "metadata"],
    ["metadata over 8 KiB in UTF-8 alone", request({ metadata: { x: "é".repeat(4_100) } }), "metadata"],
    ["metadata with NUL", request({ metadata: { x: "a\u0000b" } }), "metadata"],
    ["metadata with NUL in a key", request({ metadata: { "a\u0000": 1 } }), "metadata"],
    ["metadata with half a character", request({ metadata: { x: "\ud83d" } }), "metadata"],
    ["metadata with a bigint", request({ metadata: { x: 1n } }), "metadata"],
    ["metadata that hides itself", request({ metadata: { toJSON: () => undefined } }), "metadata"],
    ["chain id zero", request({ chainId: 0 }), "chainId"],
    ["chain id negative", request({ chainId: -1 }), "chainId"],
    ["chain id fractional", request({ chainId: 1.5 }), "chainId"],
    ["chain id null", request({ chainId: null }), "chainId"],
    ["chain id words", request({ chainId: "mainnet" }), "chainId"],
    ["chain id beyond what a number holds", request({ chainId: "9007199254740993" }), "chainId"],
    ["chain id with a leading zero", request({ chainId: "01" }), "chainId"],
  ])("is refused with the path of the invalid field: %s", (_, input, path) => {
    expect(complaint(input)).toBe(path);
  });

  it("is refused if its metadata are circular or nested too deeply for the call stack", () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    expect(complaint(request({ metadata: circle }))).toBe("metadata");
    const deep: unknown = JSON.parse(`{"x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`);
    expect(complaint(request({ metadata: deep }))).toBe("metadata");
  });

  it("is accepted if its metadata contain an escaped NUL as plain text", () => {
    const metadata = { x: "\\u0000", y: "\\\\u0000", z: "😀" };
    expect(intentOf(request({ metadata })).metadata).toEqual(metadata);
  });

  it("may have null in an optional field, which equals an absent field", () => {
    expect(intentOf(request({ requestId: null, metadata: null }))).toMatchObject({ requestId: null, metadata: null });
  });
});

describe("the request id of a create", () => {
  it.each([
    ["empty", ""],
    ["256 characters", "x".repeat(256)],
    ["with NUL", "a\u0000b"],
    ["with a line break", "a\nb"],
    ["with a tab", "a\tb"],
    ["with a control of Latin-1", "a\u0085b"],
    ["with a line separator", "a\u2028b"],
    ["with half a character", "a\ud83db"],
    ["a number", 42],
    ["an object", {}],
    ["an array", ["a"]],
    ["a boolean", false],
  ])("is refused if it is invalid, with the path of the field: %s", (_, requestId) => {
    expect(complaint(request({ requestId }))).toBe("requestId");
  });

  it.each([
    ["x"],
    ["x".repeat(255)],
    ["😀".repeat(255)],
    ["日本語 42"],
    ["a/b?c=d&e"],
    [" "],
    ["'; drop table lanes; --"],
  ])("is kept unchanged: %s", (requestId) => {
    expect(intentOf(request({ requestId })).requestId).toBe(requestId);
  });
});

describe("the chain id of a request", () => {
  it.each([[10], ["10"], ["0xa"], ["0xA"]])("is parsed as chain 10 from %s", (chainId) => {
    expect(parseChainId([1, 10], chainId)).toBe(10);
  });

  it("may be omitted if only one chain is configured", () => {
    expect(intentOf(request(), [5]).lane.chainId).toBe(5);
    expect(() => intentOf(request(), [5, 6])).toThrow("several chains");
    expect(() => intentOf(request(), [])).toThrow("chainId");
  });

  it("is accepted if only another node serves that chain", () => {
    const elsewhere = (chainId: number) => chainId === 7;
    expect(parseChainId([1, 5], 7, elsewhere)).toBe(7);
    expect(() => parseChainId([1, 5], 8, elsewhere)).toThrow(expect.objectContaining({ code: "UNKNOWN_CHAIN" }));
  });

  it("is refused with UNKNOWN_CHAIN and the configured chains, if it is not configured", () => {
    const failure = (): Intent => intentOf(request({ chainId: 7 }), [1, 5]);
    expect(failure).toThrow("configured: 1, 5");
    expect(failure).toThrow(expect.objectContaining({ code: "UNKNOWN_CHAIN", status: 422 }));
  });
});

describe("the intent parsed from a create request", () => {
  it("has its signer in lower case", () => {
    const casings = [SIGNER, SIGNER.toLowerCase(), `0x${SIGNER.slice(2).toUpperCase()}`];
    const lanes = casings.map((signer) => intentOf(request({ signer })).lane);
    expect(new Set(lanes.map(({ signer }) => signer))).toEqual(new Set([SIGNER.toLowerCase()]));
  });

  it("has the same fingerprint for the same payload", () => {
    const [one, other] = [intentOf(request({ requestId: "x" })), intentOf(request({ requestId: "x" }))];
    expect(one.txId).not.toBe(other.txId);
    expect(one.fingerprint).toBe(other.fingerprint);
    expect(intentOf(request({ metadata: { a: 1 }, requestId: "y" })).fingerprint).toBe(one.fingerprint);
  });
});

describe("parsing arbitrary input as a create request", () => {
  const keys = fc.constantFrom(
    "signer",
    "payload",
    "requestId",
    "metadata",
    "chainId",
    "__proto__",
    "constructor",
    "to",
  );
  const payloadKeys = fc.constantFrom(
    ...["to", "data", "value", "gas", "type", "gasPrice", "maxFeePerGas", "accessList", "function", "abi", "args"],
    ...["bytecode", "__proto__", "toString"],
  );
  const plausible = fc.oneof(
    fc.constantFrom<unknown>(SIGNER, TO, "0x", "0xab", 1, "5", -1, null, true, [], {}, "constructor", "toString"),
    fc.constantFrom<unknown>("transfer(address,uint256)", [TO, 5], [{ type: "function", name: "f", inputs: [] }]),
    fc.jsonValue(),
  );
  const payloads = fc.dictionary(payloadKeys, plausible, { maxKeys: 6 });
  const requests = fc
    .tuple(fc.dictionary(keys, plausible, { maxKeys: 5 }), fc.option(payloads, { nil: undefined }), fc.boolean())
    .map(([base, payload, signed]) => ({
      ...base,
      ...(payload === undefined ? {} : { payload }),
      ...(signed ? { signer: SIGNER } : {}),
    }));

  it("returns an intent or throws a FencepostError with a path", () => {
    fc.assert(
      fc.property(fc.oneof({ weight: 9, arbitrary: requests }, { weight: 1, arbitrary: fc.jsonValue() }), (input) => {
        try {
          const intent = intentOf(input as CreateRequest);
          expect(intent.lane.signer).toMatch(/^0x[0-9a-f]{40}$/);
          expect(["legacy", "eip2930", "eip1559", undefined]).toContain(intent.payload.type);
          expect(intent.payload.data).toMatch(/^0x([0-9a-f]{2})*$/);
        } catch (error) {
          expect(error).toBeInstanceOf(FencepostError);
          if ((error as FencepostError).code === "INVALID_REQUEST") {
            expect(typeof (error as FencepostError).extras.path).toBe("string");
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("rethrows an internal error of the codec instead of blaming the caller", () => {
    const broken: Codec = {
      ...codec,
      parseAddress: () => {
        throw new RangeError("out of memory");
      },
    };
    expect(() => normalise({ codec: broken, entropy, chainIds: [1] }, request())).toThrow(RangeError);
  });
});
