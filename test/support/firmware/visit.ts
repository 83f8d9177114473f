import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import type { Provider } from "../../../src/capabilities/provider.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import type { Clock } from "../../../src/kernel/time/clock.ts";
import { type AnyStep, collectSteps, type ProbeReport, readProbe, type Undone } from "../../../src/runs/model/step.ts";
import { activateFirmware } from "../../../src/runs/steps/rack/activate-firmware.ts";
import { setDevicePower } from "../../../src/runs/steps/rack/set-device-power.ts";
import { updateFirmware } from "../../../src/runs/steps/rack/update-firmware.ts";
import { validateDevice } from "../../../src/runs/steps/rack/validate-device.ts";

const steps = collectSteps([updateFirmware, activateFirmware, setDevicePower, validateDevice]);

/** A device as steps see it. */
export interface VisitedDevice {
  readonly provider: Provider;
  readonly clock: Clock;
  readonly serial: string;
  bmc(): Promise<BmcTarget>;
  readonly image: Buffer;
  /** Where the device fetches the image. */
  uri(): string;
  /** Why the image is not on this server; absent: it is. */
  readonly missing?: string;
  /** Absent: a new certificate is accepted after a flash. */
  readonly acceptsNoCertificate?: boolean;
}

/** One step on one device, as an executor drives it; every process may die after any call, so nothing is kept but JSON. */
export class Visit {
  readonly #kind: AnyStep;
  readonly #payload: JsonObject;
  readonly #device: VisitedDevice;
  readonly #withdrawn: AbortSignal | undefined;
  evidence: JsonObject = {};
  receipt: JsonObject | null = null;
  actingAt: Date | null = null;
  readonly log: string[] = [];
  readonly accepted: string[] = [];

  /** `withdrawn`: the run is being canceled. */
  constructor(device: VisitedDevice, kind: string, payload: object, withdrawn?: AbortSignal) {
    this.#device = device;
    this.#withdrawn = withdrawn;
    this.#kind = steps.get(kind) as AnyStep;
    this.#payload = this.#kind.parse(JSON.parse(JSON.stringify(payload)) as JsonObject, "payload");
  }

  get #context() {
    const { provider, clock, serial, image, bmc, uri, acceptsNoCertificate } = this.#device;
    return {
      payload: this.#payload,
      target: { facts: { serial } },
      device: { kind: "machine", id: "m1" },
      can: provider.can,
      call: {
        ...aCall(),
        sendChunk: <T>(send: (signal: AbortSignal) => Promise<T>) => send(aCall().signal),
        report: () => undefined,
        ...(this.#withdrawn && { withdrawn: this.#withdrawn }),
      },
      clock,
      log: (text: string) => void this.log.push(text),
      bmc,
      ...(!acceptsNoCertificate && { acceptCertificate: (shown: string) => void this.accepted.push(shown) }),
      artifacts: {
        find: async () => ({
          name: "image.fwpkg",
          bytes: image.length,
          async *chunks() {
            yield image;
          },
        }),
        uriFor: async () => uri(),
        whyMissing: async () => this.#device.missing,
      },
      evidence: this.evidence,
      receipt: this.receipt,
    } as unknown as Parameters<AnyStep["act"]>[0];
  }

  async before(): Promise<this> {
    this.evidence = JSON.parse(JSON.stringify(await this.#kind.before(this.#context))) as JsonObject;
    return this;
  }

  /** `dies`: after the order left, and before its receipt was written. */
  async act({ dies = false } = {}): Promise<this> {
    this.actingAt = this.#device.clock.now();
    const came = await this.#kind.act(this.#context);
    if (!dies) this.receipt = came?.receipt ?? null;
    return this;
  }

  async probe(): Promise<ProbeReport> {
    const report = readProbe(await this.#kind.probe({ ...this.#context, actingAt: this.actingAt }));
    if (report.receipt !== undefined) this.receipt = JSON.parse(JSON.stringify(report.receipt)) as JsonObject;
    return report;
  }

  async undo(): Promise<Undone | undefined> {
    return this.#kind.undo?.(this.#context);
  }

  async carryOn(): Promise<void> {
    const came = await this.#kind.carryOn?.(this.#context);
    if (came?.receipt !== undefined) this.receipt = came.receipt;
  }
}
