import { describe, expect, it } from "vitest";
import { formatTraceparent, parseTraceparent, traceparentIn } from "../../../src/domain/text/trace-context.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

describe("a W3C traceparent", () => {
  it("is read and written in the form of version 00", () => {
    for (const sampled of [true, false]) {
      const context = { traceId: TRACE, spanId: SPAN, sampled };
      expect(parseTraceparent(formatTraceparent(context))).toEqual(context);
    }
    expect(formatTraceparent({ traceId: TRACE, spanId: SPAN, sampled: true })).toBe(`00-${TRACE}-${SPAN}-01`);
  });

  it("is read with the fields of version 00 if it has a later version", () => {
    expect(parseTraceparent(`01-${TRACE}-${SPAN}-03-more`)).toMatchObject({ traceId: TRACE, sampled: true });
  });

  it.each([
    ["nothing", undefined],
    ["a number", 7],
    ["a list of headers", [`00-${TRACE}-${SPAN}-01`]],
    ["capital letters", `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ["version ff, which there will never be", `ff-${TRACE}-${SPAN}-01`],
    ["no trace", `00-${"0".repeat(32)}-${SPAN}-01`],
    ["no span", `00-${TRACE}-${"0".repeat(16)}-01`],
    ["more than version 00 has", `00-${TRACE}-${SPAN}-01-more`],
    ["a line break behind it", `00-${TRACE}-${SPAN}-01\n`],
    ["something long", `01-${TRACE}-${SPAN}-01-${"x".repeat(300)}`],
  ])("is read as null if it is %s", (_, text) => {
    expect(parseTraceparent(text)).toBeNull();
  });

  it("is taken from the caller's metadata only if it is valid", () => {
    expect(traceparentIn({ traceparent: `00-${TRACE}-${SPAN}-01` })).toBe(`00-${TRACE}-${SPAN}-01`);
    expect(traceparentIn({ traceparent: "mine" })).toBeNull();
    expect(traceparentIn({})).toBeNull();
    expect(traceparentIn(null)).toBeNull();
  });
});
