/**
 * Puts calls, logs and errors into words by a contract's ABI, for people who read them. The data is untrusted: every
 * text has a limit, data that does not match its layout has no words, and neither has data that would become far larger
 * than it is.
 */
import { decodeAbiParameters, decodeEventLog, hexToBytes, toEventSelector, toFunctionSelector } from "viem/utils";
import type { Hash, Hex } from "../../../domain/lane.ts";
import { type AbiWords, BadEncoding, type Words } from "../../../ports/codec.ts";
import { checkInputs } from "./check-inputs.ts";
import { shorten } from "./error-texts.ts";
import { parseSignatures } from "./parse-signatures.ts";

interface Item {
  readonly type: string;
  readonly name: string;
  readonly inputs: readonly { readonly name?: string; readonly type: string; readonly indexed?: boolean }[];
}

/** Reads an ABI, given as JSON or as signatures. Throws `BadEncoding` if it is not one. */
export function readWords(abi: readonly unknown[]): AbiWords {
  const named = itemsOf(abi).filter(({ type, name }) => KINDS.has(type) && typeof name === "string");
  const [calls, errors, events] = [new Map<string, Item>(), new Map<string, Item>(), new Map<string, Item>()];
  for (const item of named) {
    const each = { ...item, inputs: item.inputs ?? [] };
    inAbi(() => {
      checkInputs(each.inputs);
      if (item.type === "event") events.set(toEventSelector(each as never), each);
      else
        (item.type === "error" ? errors : calls).set(toFunctionSelector({ ...each, type: "function" } as never), each);
    });
  }
  return {
    call: (data) => argumentsIn(calls, data),
    error: (data) => argumentsIn(errors, data),
    event: (topics, data) => eventIn(events, topics, data),
  };
}

const KINDS: ReadonlySet<string> = new Set(["function", "error", "event"]);
/** Length of all signatures together: viem's parser must not be given text whose parsing takes seconds. */
const LONGEST_SIGNATURES = 20_000;

function itemsOf(abi: readonly unknown[]): readonly Item[] {
  return inAbi(() => {
    const isText = abi.every((item) => typeof item === "string");
    if (!isText) return abi.map(asItem);
    if (abi.join("").length > LONGEST_SIGNATURES) throw new Error("the signatures are too long: give the ABI as JSON");
    return parseSignatures(abi as readonly string[]) as readonly Item[];
  });
}

function asItem(value: unknown): Item {
  const item = Object(value) as Partial<Item>;
  const { inputs = [] } = item;
  if (typeof item.type !== "string" || !Array.isArray(inputs)) throw new Error("each entry needs a type");
  checkInputs(inputs);
  return { ...item, inputs } as Item;
}

function inAbi<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new BadEncoding("", `is not an ABI: ${shorten((error as Error).message.split("\n")[0] ?? "")}`);
  }
}

function argumentsIn(known: ReadonlyMap<string, Item>, data: Hex): Words | null {
  const item = known.get(data.slice(0, SELECTOR));
  if (item === undefined) return null;
  try {
    const values = decodeAbiParameters(
      item.inputs as never,
      bytesIn(`0x${data.slice(SELECTOR)}`),
    ) as readonly unknown[];
    return worded(item, values);
  } catch {
    return null;
  }
}

const SELECTOR = 10;

/** How often the data may be read on average. An encoder writes every value once. */
const READ_AT_MOST = 4;

/**
 * Bytes that limit how much of them is read. Offsets in hostile data point to the same place again and again: then 10 KB
 * would become megabytes of values.
 */
class Metered extends Uint8Array {
  static get [Symbol.species]() {
    return Uint8Array;
  }

  private left = READ_AT_MOST * this.length;

  override subarray(from = 0, to = this.length): Uint8Array<ArrayBuffer> {
    this.left -= Math.max(0, to - from);
    if (this.left < 0) throw new Error("the data is read too often");
    return super.subarray(from, to) as Uint8Array<ArrayBuffer>;
  }
}

function bytesIn(data: Hex) {
  return new Metered(hexToBytes(data));
}

function eventIn(known: ReadonlyMap<string, Item>, topics: readonly Hash[], data: Hex): Words | null {
  const item = known.get(topics[0] ?? "");
  if (item === undefined) return null;
  try {
    const unnamed = item.inputs.map((input, at) => ({ ...input, name: `${at}` }));
    const given = { abi: [{ ...item, inputs: unnamed }], topics, data: bytesIn(data), strict: true };
    const { args = {} } = decodeEventLog(given as never) as { readonly args?: Readonly<Record<string, unknown>> };
    return worded(
      item,
      item.inputs.map((_, at) => args[`${at}`]),
    );
  } catch {
    return null;
  }
}

function worded({ name, inputs }: Item, values: readonly unknown[]): Words {
  const args = inputs.map((input, at) => ({ name: nameOf(input.name || `${at}`), value: shorten(textOf(values[at])) }));
  return { name: nameOf(name), args };
}

const LONGEST_NAME = 100;

function nameOf(name: string) {
  return shorten(name).slice(0, LONGEST_NAME);
}

/** A value as JSON would show it; numbers that may exceed a double are digits. */
function textOf(value: unknown): string {
  if (typeof value === "string" || typeof value === "bigint") return `${value}`;
  return JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? `${each}` : each)) ?? "";
}
