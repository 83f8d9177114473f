import { beforeEach, describe, expect, test, vi } from "vitest";
import { need } from "../provider.ts";
import type { FirmwareUpdate } from "../rack/firmware.ts";
import type { BmcManager } from "../rack/manager.ts";
import type { DeviceTask, DeviceTasks } from "../rack/tasks.ts";
import type { StreamCall } from "../stream.ts";
import { aCall, type DeviceTrouble, type FaultyBench, type SetUpBench } from "./device-bench.ts";
import { describeFailures } from "./failures.ts";

/** A flash that a device has begun, as the device itself tells. */
export interface RealFlash {
  readonly component: string;
  readonly to: string;
}

/** A device on the bench whose firmware can be replaced; nothing is being written to it. */
export interface FirmwareBench extends FaultyBench {
  /** What runs on it, by our word for the part. */
  readonly installed: Readonly<Record<string, string>>;
  /** A part whose new firmware runs as soon as it is written, and whether its BMC restarts over that. */
  readonly component: string;
  image(component: string, version: string): Uint8Array;
  /** Serves an image where the device can fetch it. */
  serve(image: Uint8Array): Promise<string>;
  flashes(): Promise<readonly RealFlash[]>;
}

const eventually = <T>(look: () => Promise<T>): Promise<T> => vi.waitFor(look, { timeout: 20_000, interval: 20 });

const aStream = (): StreamCall => ({
  ...aCall(),
  sendChunk: (send) => send(new AbortController().signal),
  report: () => undefined,
});

/** What every provider of firmware updates, of the tasks that they are, and of the BMC itself must do. */
export function describeFirmware(
  name: string,
  setUp: SetUpBench<FirmwareBench>,
  troubles: readonly DeviceTrouble[],
): void {
  describe(`firmware of ${name}`, () => {
    let bench: FirmwareBench;
    let firmware: FirmwareUpdate;
    let tasks: DeviceTasks;
    let manager: BmcManager;
    beforeEach(async () => {
      bench = await setUp();
      ({ firmware, tasks, manager } = need(bench.provider, ["firmware", "tasks", "manager"]));
    });
    const versions = async () => {
      const installed = await firmware.readInstalled(bench.target, aCall());
      return Object.fromEntries(installed.map(({ component, version }) => [component, version]));
    };
    const ended = (task: string): Promise<DeviceTask> =>
      eventually(async () => {
        const seen = await tasks.readTask(bench.target, task, aCall());
        expect(seen.state).not.toBe("running");
        return seen;
      });
    const send = (image: Uint8Array) =>
      firmware.upload(
        bench.target,
        {
          name: "image",
          bytes: image.length,
          targets: [],
          async *chunks() {
            yield image;
          },
        },
        aStream(),
      );

    test("reads what is installed, all of it or some of it", async () => {
      expect(await versions()).toEqual(bench.installed);
      const [first] = await firmware.readInstalled(bench.target, aCall());
      expect(await firmware.readInstalled(bench.target, aCall(), [first?.path ?? ""])).toEqual([first]);
    });

    test("replaces it by an address: the task comes to its end, and the new version shows", async () => {
      expect(await firmware.readWays(bench.target, aCall())).toContain("simple");
      const uri = await bench.serve(bench.image(bench.component, "99.1"));
      const { task } = await firmware.startUpdate(bench.target, { uri, targets: [] }, aCall());
      expect(await tasks.listTasks(bench.target, aCall())).toContain(task);
      await eventually(async () => expect((await versions())[bench.component]).toBe("99.1"));
      expect(await ended(task ?? "")).toMatchObject({ state: "completed" });
      expect(await bench.flashes()).toMatchObject([{ component: bench.component, to: "99.1" }]);
    });

    test("replaces it by an upload, once", async () => {
      const { task } = await send(bench.image(bench.component, "99.2"));
      expect(task).not.toBeNull();
      await eventually(async () => expect((await versions())[bench.component]).toBe("99.2"));
      expect(await bench.flashes()).toHaveLength(1);
    });

    test("an image for another device is refused, at once or by a task that fails", async () => {
      const wrong = Buffer.from("MILLWRIGHT-FW another-model nothing 1\n");
      const failure = await send(wrong).then(
        async ({ task }) => (await ended(task ?? "")).state,
        ({ family }: { family: string }) => family,
      );
      expect(["failed", "declines"]).toContain(failure);
      expect(await versions()).toEqual(bench.installed);
    });

    test("a second update while one is under way is for later, and nothing of it is done", async () => {
      await send(bench.image(bench.component, "99.3"));
      await expect(send(bench.image(bench.component, "99.4"))).rejects.toMatchObject({ family: "busy" });
      await eventually(async () => expect((await versions())[bench.component]).toBe("99.3"));
      expect(await bench.flashes()).toHaveLength(1);
    });

    test("the BMC says who it is to everybody, and starts anew when it is restarted", async () => {
      const before = await manager.readStart(bench.target, aCall());
      const { uuid } = await manager.readRoot({ ...bench.target, password: "not-the-password" }, aCall());
      expect(uuid).not.toBeNull();
      await manager.resetManager(bench.target, aCall());
      await eventually(async () => {
        const after = await manager.readStart(bench.target, aCall());
        expect(after).not.toBeNull();
        expect(after).not.toBe(before);
      });
      expect((await manager.readRoot(bench.target, aCall())).uuid).toBe(uuid);
    });

    describeFailures(() => bench, troubles, {
      readInstalled: ({ provider, target }, call) => need(provider, ["firmware"]).firmware.readInstalled(target, call),
      listTasks: ({ provider, target }, call) => need(provider, ["tasks"]).tasks.listTasks(target, call),
    });
  });
}
