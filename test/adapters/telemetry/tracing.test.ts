/**
 * Spans as the real OpenTelemetry SDK receives them. The SDK is registered for the whole process, so each test
 * unregisters it.
 */
import * as api from "@opentelemetry/api";
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterEach, describe, expect, it } from "vitest";
import { openTracing, type Tracing } from "../../../src/adapters/telemetry/open-tracing.ts";
import { traceparentIn } from "../../../src/domain/text/trace-context.ts";
import { transfer, World, type WorldNode } from "../../support/world.ts";

const CALLER = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" };
const TRACEPARENT = `00-${CALLER.traceId}-${CALLER.spanId}-01`;

let world: World;
afterEach(async () => {
  await world.close();
  api.trace.disable();
});

function registerSdk(options: ConstructorParameters<typeof BasicTracerProvider>[0] = {}): InMemorySpanExporter {
  const exporter = new InMemorySpanExporter();
  api.trace.setGlobalTracerProvider(
    new BasicTracerProvider({ ...options, spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
  return exporter;
}

interface TracedNode extends WorldNode {
  readonly tracing: Tracing;
  readonly asked: string[];
}

async function startTraced(): Promise<TracedNode> {
  const tracing = (await openTracing({ clock: world.clock, version: "1.0.0", api })) as Tracing;
  const node = await world.startNode({ tracing });
  const asked: string[] = [];
  tracing.connect(async (txId) => {
    asked.push(txId);
    return traceparentIn((await node.store.transaction(txId))?.metadata ?? null);
  });
  return { ...node, tracing, asked };
}

/** Handles a create request that carries this `traceparent` header. */
function createWithin({ node, tracing }: TracedNode, traceparent: unknown, request = transfer()) {
  let created: ReturnType<typeof node.api.create> | undefined;
  tracing.within(traceparent, () => {
    created = node.api.create(request);
  });
  return world.settle(created as ReturnType<typeof node.api.create>);
}

const names = (spans: readonly ReadableSpan[]): readonly string[] => spans.map(({ name }) => name);
const STAGES = ["fencepost.create", "fencepost.sign", "fencepost.broadcast", "fencepost.receipt", "fencepost.finality"];

describe("a traced transaction", () => {
  it("has one span per stage in the caller's trace, each a child of the create span", async () => {
    const exporter = registerSdk();
    world = new World();
    const node = await startTraced();
    const { txId } = await createWithin(node, TRACEPARENT);
    await world.allSettled(1);
    const spans = exporter.getFinishedSpans();
    expect(names(spans)).toEqual(STAGES);
    const [create, ...stages] = spans as [ReadableSpan, ...ReadableSpan[]];
    expect(create.parentSpanContext).toMatchObject(CALLER);
    for (const span of spans) expect(span.spanContext().traceId).toBe(CALLER.traceId);
    for (const span of stages) {
      expect(span.parentSpanContext?.spanId).toBe(create.spanContext().spanId);
      expect(span.attributes).toMatchObject({
        "fencepost.tx_id": txId,
        "fencepost.nonce": 0,
        "fencepost.node_id": "node-1",
        "fencepost.fencing_token": 1,
        "fencepost.resumed": false,
      });
    }
    expect(stages.at(-1)?.attributes).toMatchObject({ "fencepost.state": "CONFIRMED" });
    expect(stages.slice(1).map(({ startTime }) => startTime)).toEqual(
      stages.slice(0, -1).map(({ endTime }) => endTime),
    );
    expect(node.asked).toEqual([]);
  });

  // protects [Signals] src/application/stages/1-create/asked-create.ts, src/adapters/telemetry/stage-spans.ts
  it("continues in the same trace on the node that takes over the lane", async () => {
    const exporter = registerSdk();
    world = new World();
    const first = await startTraced();
    world.holdBlocks();
    const { txId } = await createWithin(first, TRACEPARENT);
    await world.until(() => names(exporter.getFinishedSpans()).includes("fencepost.broadcast"));
    world.crash(first);
    const second = await startTraced();
    world.releaseBlocks();
    await world.allSettled(1);
    await world.until(() => names(exporter.getFinishedSpans()).includes("fencepost.finality"));
    const late = exporter.getFinishedSpans().filter(({ attributes }) => attributes["fencepost.node_id"] === "node-2");
    expect(names(late)).toEqual(expect.arrayContaining(["fencepost.receipt", "fencepost.finality"]));
    const [create] = exporter.getFinishedSpans();
    for (const span of late) {
      expect(span.spanContext().traceId).toBe(CALLER.traceId);
      expect(span.parentSpanContext?.spanId).toBe(create?.spanContext().spanId);
      expect(span.attributes).toMatchObject({ "fencepost.tx_id": txId, "fencepost.fencing_token": 2 });
    }
    expect(late[0]?.attributes).toMatchObject({ "fencepost.resumed": true });
    expect(second.asked).toEqual([txId]);
  });

  it("begins a new trace if the caller sends no valid traceparent", async () => {
    const exporter = registerSdk();
    world = new World();
    const node = await startTraced();
    for (const header of [undefined, "00-garbage", ["a", "b"]]) await createWithin(node, header);
    await world.allSettled(3);
    const creates = exporter.getFinishedSpans().filter(({ name }) => name === "fencepost.create");
    expect(creates.map(({ parentSpanContext }) => parentSpanContext)).toEqual([undefined, undefined, undefined]);
    expect(new Set(exporter.getFinishedSpans().map((span) => span.spanContext().traceId)).size).toBe(3);
    expect(exporter.getFinishedSpans()).toHaveLength(3 * STAGES.length);
  });

  it("has a create span with error status if the create fails", async () => {
    const exporter = registerSdk();
    world = new World();
    const node = await startTraced();
    await expect(createWithin(node, TRACEPARENT, { ...transfer(), chainId: 999 })).rejects.toThrow();
    expect(exporter.getFinishedSpans()[0]?.status).toMatchObject({ code: api.SpanStatusCode.ERROR });
  });

  // protects [Signals] src/application/stages/1-create/asked-create.ts, src/adapters/telemetry/stage-spans.ts
  it("keeps its metadata unchanged if no traceparent can be added", async () => {
    registerSdk();
    world = new World();
    const node = await startTraced();
    const own = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, order: 7 };
    await createWithin(node, TRACEPARENT, transfer({ metadata: own }));
    const full = { note: "x".repeat(8_000) };
    await createWithin(node, TRACEPARENT, transfer({ metadata: full }));
    await createWithin(node, TRACEPARENT, transfer({ metadata: { order: 8 } }));
    const kept = world.rows().map(({ metadata }) => metadata);
    expect(kept.slice(0, 2)).toEqual([own, full]);
    expect(kept[2]).toEqual({ order: 8, traceparent: expect.stringMatching(/^00-4bf92f3577b34da6a3ce929d0e0e4736-/) });
  });

  it("is processed but not recorded if the caller's traceparent or the sampler disables sampling", async () => {
    const exporter = registerSdk();
    world = new World();
    const node = await startTraced();
    await createWithin(node, `00-${CALLER.traceId}-${CALLER.spanId}-00`);
    await world.allSettled(1);
    expect(exporter.getFinishedSpans()).toEqual([]);
    api.trace.disable();
    const off = registerSdk({ sampler: new AlwaysOffSampler() });
    await createWithin(node, undefined);
    await world.allSettled(2);
    expect(off.getFinishedSpans()).toEqual([]);
  });
});

describe("tracing without an OpenTelemetry SDK", () => {
  it("records no spans", async () => {
    world = new World();
    const node = await startTraced();
    await createWithin(node, TRACEPARENT);
    await world.allSettled(1);
    expect(world.rows()[0]?.metadata).toBeNull();
    expect(node.asked).toEqual([]);
  });

  it("is disabled if the OpenTelemetry API package is missing", async () => {
    world = new World();
    expect(await openTracing({ clock: world.clock, version: "1.0.0", api: null })).toBeNull();
  });
});
