import { Compile } from "typebox/compile";
import { describe, expect, it } from "vitest";
import { ClusterNodes, LaneLeases } from "../../../src/contract/calls/cluster.ts";
import { unavailable } from "../../../src/domain/errors.ts";
import { httpApp } from "../../support/http-app.ts";
import { CHAIN_ID, RECIPIENT, SIGNER_EIP55, sampleInstance, sampleLease } from "../../support/scripted-api.ts";

describe("GET /api/v1/nodes", () => {
  it("returns nodes in the form of the contract's schema, in order", async () => {
    const embedded = sampleInstance({ nodeId: "node-b", url: "", mode: "basic", lanes: 0 });
    const app = httpApp({ nodes: () => Promise.resolve([sampleInstance(), embedded]) });
    const response = await app.inject("/api/v1/nodes");
    expect(response.statusCode).toBe(200);
    expect([...Compile(ClusterNodes).Errors(response.json())]).toEqual([]);
    expect(response.json().items).toEqual([
      {
        nodeId: "node-a",
        instanceId: "instance-1",
        url: "http://127.0.0.1:3000",
        version: "1.2.3",
        mode: "worker-queue",
        startedAt: "2026-01-01T00:00:00.000Z",
        heartbeatAt: "2026-01-01T00:00:05.000Z",
        lanes: 3,
      },
      expect.objectContaining({ nodeId: "node-b", url: "", mode: "basic", lanes: 0 }),
    ]);
  });

  it("is 503 if the database does not answer", async () => {
    const app = httpApp({ nodes: () => Promise.reject(unavailable("the database does not answer")) });
    const response = await app.inject("/api/v1/nodes");
    expect(response.statusCode).toBe(503);
    expect(response.json()).toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("GET /api/v1/leases", () => {
  it("returns a lease in the form of the contract's schema", async () => {
    const response = await httpApp({ leases: () => Promise.resolve([sampleLease()]) }).inject("/api/v1/leases");
    expect(response.statusCode).toBe(200);
    expect([...Compile(LaneLeases).Errors(response.json())]).toEqual([]);
    expect(response.json()).toEqual({
      items: [
        {
          chainId: CHAIN_ID,
          signer: SIGNER_EIP55,
          nodeId: "node-a",
          instanceId: "instance-1",
          fencingToken: 3,
          acquiredAt: "2026-01-01T00:00:00.000Z",
          expiresAt: "2026-01-01T00:00:15.000Z",
        },
      ],
    });
  });

  it("leaves out lanes without an owner", async () => {
    const free = sampleLease({ lane: { chainId: 1, signer: RECIPIENT }, owner: null });
    const app = httpApp({ leases: () => Promise.resolve([free, sampleLease(), free]) });
    expect((await app.inject("/api/v1/leases")).json().items).toHaveLength(1);
  });
});

it.each([["/api/v1/nodes?alive=1"], ["/api/v1/leases?signer=0x00"]])(
  "%s is refused because the route does not have this query parameter",
  async (url) => {
    const response = await httpApp().inject(url);
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "INVALID_REQUEST" });
  },
);
