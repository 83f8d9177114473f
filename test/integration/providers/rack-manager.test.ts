import { createSecureServer, createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createCertificate } from "../../../simulator/certificate/certificate.ts";
import { startTemporarySimulator } from "../../../simulator/testing/temporary-simulator.ts";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { isFabricRunning } from "../../../src/capabilities/rack/fabric.ts";
import type { ManagedNode } from "../../../src/capabilities/rack/rack-manager.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import { createRackManager, type RackManagerClient } from "../../../src/providers/rack-manager/rack-manager.ts";

const JOB = { id: "job-1", node: "m-rack1-01" };

type Site = Awaited<ReturnType<typeof startTemporarySimulator>>;
interface Truth {
  readonly mac: string;
  readonly components: readonly { readonly id: string; readonly version: string }[];
}

describe.each(["d", "h"] as const)("a rack manager with the numbering %s", (api) => {
  let site: Site;
  let manager: RackManagerClient;
  let url: string;
  beforeAll(async () => {
    site = await startTemporarySimulator({ site: "racks=1", speed: 2_000, rackManager: api });
    url = (await site.control<{ url: string }>("GET", "/rack-manager")).body.url;
    manager = createRackManager({ url, api });
  });
  afterAll(async () => {
    manager.close();
    await site[Symbol.asyncDispose]();
  });

  const truth = async (id: string) => (await site.control<Truth>("GET", `/devices/${id}`)).body;
  const nodeOf = async (id: string, kind: ManagedNode["kind"]): Promise<ManagedNode> => ({
    id,
    rackId: "rack-1",
    kind,
    bmc: { address: "127.0.0.1", port: 443, mac: (await truth(id)).mac, username: "u", password: "p" },
  });
  const nodesOf = (kind: ManagedNode["kind"], ...ids: string[]) => Promise.all(ids.map((id) => nodeOf(id, kind)));
  const seen = async () =>
    (await site.control<{ calls: { call: string; nodes: string[] }[] }>("GET", "/rack-manager")).body.calls;
  const ended = (id: string, node: string) =>
    vi.waitFor(
      async () => {
        const task = await manager.readJob({ id, node }, aCall());
        expect(task.state).not.toBe("running");
        return task;
      },
      { timeout: 20_000, interval: 20 },
    );

  test("takes one batch of a kind, gives each device a job, and brings it to its end", async () => {
    const trays = await nodesOf("compute", "m-rack1-01", "m-rack1-02");
    const files = [{ target: "bios", filename: "GB-2U-96C--bios--U46-2.30.bin" }];
    const submitted = await manager.submitFirmware(trays, files, aCall());
    expect([...submitted.keys()]).toEqual(["m-rack1-01", "m-rack1-02"]);
    const batches = (await seen()).filter(({ call }) => call === "updateFirmware");
    expect(batches).toEqual([{ call: "updateFirmware", nodes: ["m-rack1-01", "m-rack1-02"] }]);
    for (const [node, one] of submitted) {
      if (!("job" in one)) throw new Error(one.error);
      expect(await ended(one.job, node)).toMatchObject({ state: "completed" });
    }
    const { components } = await truth("m-rack1-01");
    expect(components.find(({ id }) => id === "bios")?.version).toBe("U46-2.30");
  });

  test("says of each device that it takes no job why", async () => {
    await site.control("POST", "/faults", { device: "m-rack1-03", fault: { type: "job_never_ends" } });
    const trays = await nodesOf("compute", "m-rack1-03");
    const files = [{ target: "bmc", filename: "GB-2U-96C--bmc--1.10.0.bin" }];
    const [first] = (await manager.submitFirmware(trays, files, aCall())).values();
    expect(first).toMatchObject({ job: expect.any(String) });
    const [second] = (await manager.submitFirmware(trays, files, aCall())).values();
    expect(second).toMatchObject({ error: expect.stringMatching(/.+/) });
    const running = await manager.readJob({ id: (first as { job: string }).job, node: "m-rack1-03" }, aCall());
    expect(running).toMatchObject({ state: "running" });
  });

  test("a job that it does not know is no failed job", async () => {
    await expect(manager.readJob({ id: "job-99", node: "m-rack1-01" }, aCall())).rejects.toMatchObject({
      family: "busy",
    });
  });

  test("knows places, and configures the fabric", async () => {
    const trays = await nodesOf("switch", "rack-1-switch-1", "rack-1-switch-2");
    const [primary] = trays;
    if (primary === undefined) throw new Error("no switch");
    const places = await manager.readPlaces(trays, aCall());
    expect(places.get("rack-1-switch-2")).toEqual({ slot: 20, trayIndex: 1 });
    await manager.configureFabric(primary, "gb200_nvl72r1_c2g4", aCall());
    await vi.waitFor(
      async () => {
        const states = [...(await manager.readFabric(trays, aCall())).values()];
        expect(states.map(isFabricRunning)).toEqual([true, true]);
      },
      { timeout: 20_000, interval: 20 },
    );
  });

  test.each([
    [{ type: "hang" }, "timed_out"],
    [{ type: "drop" }, "unreachable"],
  ])("that does not answer (%j) is told from one that refuses", async (fault, code) => {
    await site.control("POST", "/faults", { device: "rack-manager", fault, times: 1 });
    const call = aCall({ lease: milliseconds(300) });
    const failure = { code, disposition: "retry", facts: { at: "rack_manager" } };
    await expect(manager.readJob(JOB, call)).rejects.toMatchObject(failure);
    await manager.readJob(JOB, aCall());
  });

  test("the other numbering is not understood by accident: a missing job reads as a failed lookup", async () => {
    const other = createRackManager({ url, api: api === "d" ? "h" : "d" });
    const places = other.readPlaces(await nodesOf("switch", "rack-1-switch-1"), aCall());
    await expect(places).rejects.toMatchObject({ name: "DeviceFailure", family: "declines" });
    other.close();
  });
});

test("a rack manager that is not there is unreachable, and said so in time", async () => {
  const manager = createRackManager({ url: "http://127.0.0.1:9", api: "d" });
  await expect(manager.readJob(JOB, aCall())).rejects.toMatchObject({ code: "unreachable" });
  manager.close();
});

/** What comes of the answers of somebody who means no good: bounded, and told from an answer. */
describe("a rack manager that answers", () => {
  const MEBIBYTE = Buffer.alloc(1_024 * 1_024);
  const framed = (flag: number, length: number, body: Buffer) => {
    const prefix = Buffer.alloc(5);
    prefix.writeUInt8(flag);
    prefix.writeUInt32BE(length, 1);
    return Buffer.concat([prefix, body]);
  };
  const ended = (stream: ServerHttp2Stream, body: Buffer) => {
    stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(body);
  };
  const ANSWERS: Readonly<Record<string, (stream: ServerHttp2Stream) => void>> = {
    "without end": (stream) => {
      const more = () => {
        while (!stream.destroyed && stream.write(MEBIBYTE));
      };
      stream.on("drain", more);
      more();
    },
    compressed: (stream) => ended(stream, framed(1, 2, Buffer.from([0x10, 0]))),
    "with two messages": (stream) => {
      const one = framed(0, 2, Buffer.from([0x10, 0]));
      ended(stream, Buffer.concat([one, one]));
    },
    "with less than it says": (stream) => ended(stream, framed(0, 9, Buffer.from([0x10, 0]))),
    "with no message": (stream) => ended(stream, framed(0, 2, Buffer.from([0x12, 0x7f]))),
    "over plain HTTP": (stream) => stream.end("<html>who are you?</html>"),
  };

  test.each(Object.keys(ANSWERS))("%s is not believed", async (how) => {
    const server = createServer();
    server.on("stream", (stream) => {
      stream.on("error", () => {});
      stream.respond({ ":status": 200 }, { waitForTrailers: how !== "over plain HTTP" });
      ANSWERS[how]?.(stream);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const manager = createRackManager({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, api: "d" });
    await expect(manager.readJob(JOB, aCall())).rejects.toMatchObject({
      code: expect.stringMatching(/^(?:protocol|unreachable)$/),
      facts: { at: "rack_manager" },
    });
    manager.close();
    server.close();
  });

  test("with a certificate that nobody vouches for is told nothing", async () => {
    const server = createSecureServer(createCertificate({ addresses: ["127.0.0.1"], now: new Date() }));
    const seen: string[] = [];
    server.on("stream", (_, headers) => void seen.push(String(headers[":path"])));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const manager = createRackManager({ url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, api: "d" });
    await expect(manager.readJob(JOB, aCall())).rejects.toMatchObject({ code: "certificate_untrusted" });
    expect(seen).toEqual([]);
    manager.close();
    server.close();
  });
});
