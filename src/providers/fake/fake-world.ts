import { setTimeout as pause } from "node:timers/promises";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import { stopped } from "../transport/bmc-lane.ts";
import { FakeMachine } from "./fake-machine.ts";
import { FAKE_PORT } from "./fake-places.ts";
import { FAKE_DURATIONS, type FakeFailure, type FakeOperation, type FakeSpeed } from "./fake-speed.ts";

export interface FakeOptions {
  readonly clock: Clock;
  readonly speed: FakeSpeed;
  readonly failures: ReadonlySet<FakeFailure>;
}

const QUICK = seconds(1);

/** All fake machines of this process. Each is there from the moment that somebody asks for it. */
export class FakeWorld {
  readonly #options: FakeOptions;
  readonly #machines = new Map<string, FakeMachine>();
  readonly #byUuid = new Map<string, FakeMachine>();
  readonly takes: Readonly<Record<FakeOperation, Duration>>;

  constructor(options: FakeOptions) {
    this.#options = options;
    this.takes = FAKE_DURATIONS[options.speed];
  }

  get clock(): Clock {
    return this.#options.clock;
  }

  machine(id: string): FakeMachine {
    let found = this.#machines.get(id);
    if (found === undefined) {
      found = new FakeMachine(id, this.clock, this.takes);
      this.#machines.set(id, found);
      this.#byUuid.set(found.systemUuid, found);
    }
    return found;
  }

  byUuid(uuid: string): FakeMachine | undefined {
    return this.#byUuid.get(uuid);
  }

  /** Whoever asks obeys the lease and the stop, as with a real one; then the machine has received a request. */
  ask({ address, port }: { readonly address: string; readonly port: number }, call: CallContext): FakeMachine {
    call.mayTouchDevice(QUICK);
    if (call.signal.aborted) throw stopped(`fake machine ${address}`, call.signal);
    if (port !== FAKE_PORT) {
      throw new DeviceFailure("unreachable", "bmc", `nobody listens on port ${port} of fake machine ${address}`);
    }
    const machine = this.machine(address);
    machine.catchUp();
    machine.counts.requests += 1;
    return machine;
  }

  fails(operation: FakeFailure): boolean {
    return this.#options.failures.has(operation);
  }

  failIfTold(operation: FakeFailure): void {
    if (!this.fails(operation)) return;
    throw new DeviceFailure(
      "refused_by_device",
      "bmc",
      `[${operation}] this fake provider was set to fail at ${operation}`,
      { disposition: "retry" },
    );
  }

  async wait(operation: FakeOperation, call: CallContext): Promise<void> {
    if (this.takes[operation] === 0) return;
    await pause(this.takes[operation], undefined, { signal: call.signal }).catch(() => {
      throw stopped("a fake machine", call.signal);
    });
  }
}
