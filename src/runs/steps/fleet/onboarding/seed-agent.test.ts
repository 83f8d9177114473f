import { describe, expect, test } from "vitest";
import { aFleetNode } from "../../../../../test/support/fleet/fleet-node.ts";
import { StepFailure } from "../../../../kernel/errors.ts";
import type { Enrollment } from "../../../../lifecycles/fleet-node/fleet-node.ts";
import { DEFAULT_POLICY } from "../../../../lifecycles/fleet-node/policy.ts";
import { readProbe } from "../../../model/step.ts";
import type { Seeding } from "./seed-agent.ts";
import { waitForAgentEnrollment } from "./wait-for-agent-enrollment.ts";

const NOW = new Date("2026-03-01T12:00:00Z");
const EXPIRED: Enrollment = { issue: 1, tokenHash: "h1", expiresAt: "2026-03-01T11:59:59.000Z", consumedAt: null };
const RENEWED: Enrollment = { issue: 2, tokenHash: "h2", expiresAt: "2026-03-01T13:00:00.000Z", consumedAt: null };

interface Around {
  readonly enrollment: Enrollment;
  readonly receipt?: Seeding | null;
  readonly sshUsername?: string | null;
  readonly systemId?: string | null;
  readonly actingAt?: Date | null;
  readonly seed?: () => Promise<void>;
  readonly addresses?: readonly string[];
  /** Of the port that it boots from. */
  readonly bootAddress?: string | null;
}
const seeded: object[] = [];
const contextOf = ({
  enrollment,
  receipt = null,
  sshUsername = "ubuntu",
  systemId = "abc",
  actingAt = NOW,
  seed = async () => {},
  addresses = ["10.40.0.17"],
  bootAddress = null,
}: Around) =>
  ({
    payload: { policy: { ...DEFAULT_POLICY, ssh_username: sshUsername }, node_mode: "maas" },
    target: aFleetNode("enrolling", { enrollment, systemId }),
    evidence: { issue: 1, expiresAt: "" },
    receipt,
    actingAt,
    clock: { now: () => NOW },
    call: { signal: new AbortController().signal },
    log: () => {},
    agent: { isEnrolled: async () => false, lastHeard: async () => null },
    enrolment: {
      issue: () => ({ token: "mwe_token", enrollment: RENEWED }),
      seed: (order: object) => {
        seeded.push(order);
        return seed();
      },
    },
    roceLinks: async () => [{ port: "roce0", subnet: "10.99.0.0/16", ipAddress: "10.99.0.1" }],
    maas: async () => ({
      maas: {
        findMachine: async () => ({
          ipAddresses: addresses,
          interfaces: [{ id: 7, links: [{ ipAddress: bootAddress }] }],
          bootInterfaceId: 7,
        }),
      },
      target: {},
    }),
  }) as unknown as Parameters<typeof waitForAgentEnrollment.probe>[0];
const probe = async (around: Around) => readProbe(await waitForAgentEnrollment.probe(contextOf(around)));
const carryOn = (around: Around) => waitForAgentEnrollment.carryOn?.(contextOf(around));
const tried = (failures: number, isDone = false): Seeding => ({ failures, isDone, why: "no route to host" });

describe("an agent whose enrolment has timed out", () => {
  test("is installed over SSH, with another token that is on record before it is told", async () => {
    expect(await probe({ enrollment: EXPIRED })).toMatchObject({ state: "halfway" });
    const reissued = await carryOn({ enrollment: EXPIRED });
    expect(reissued).toMatchObject({
      receipt: { failures: 0, isDone: false },
      effects: [{ type: "observe", id: "fn-1", facts: { enrollment: RENEWED } }],
    });
    expect(seeded).toEqual([]);

    const receipt = reissued?.receipt as Seeding;
    expect(await probe({ enrollment: RENEWED, receipt })).toMatchObject({ state: "halfway" });
    expect(await carryOn({ enrollment: RENEWED, receipt })).toMatchObject({ receipt: { isDone: true } });
    expect(seeded).toEqual([{ address: "10.40.0.17", username: "ubuntu", token: "mwe_token" }]);
    expect(await probe({ enrollment: RENEWED, receipt: tried(0, true) })).toMatchObject({ state: "in_progress" });
  });

  test.each([
    [["10.99.0.1", "10.40.0.17"], null],
    [["10.99.0.1", "10.50.0.4", "10.40.0.17"], "10.40.0.17"],
  ])("is reached at the port that it boots from, and never by RoCE (%j, %j)", async (addresses, bootAddress) => {
    await carryOn({ enrollment: RENEWED, receipt: tried(0), addresses, bootAddress });
    expect(seeded.at(-1)).toMatchObject({ address: "10.40.0.17" });
  });

  test("calls a person once that has failed twice, and not before", async () => {
    const seed = async () => {
      throw new StepFailure("unreachable", "no route to host", { facts: { at: "ssh" } });
    };
    const first = await carryOn({ enrollment: RENEWED, receipt: tried(0), seed });
    expect(first).toEqual({ receipt: { failures: 1, isDone: false, why: "no route to host" } });
    expect(await probe({ enrollment: RENEWED, receipt: tried(1) })).toMatchObject({ state: "halfway" });
    const second = await carryOn({ enrollment: RENEWED, receipt: tried(1), addresses: [] });
    // Nobody was told the token: who retries the stage does not wait for its end.
    const expired = { issue: 2, expiresAt: NOW.toISOString() };
    expect(second).toMatchObject({ receipt: { failures: 2 }, effects: [{ facts: { enrollment: expired } }] });
    await expect(probe({ enrollment: RENEWED, receipt: tried(2) })).rejects.toMatchObject({
      code: "ssh_seed_failed",
      disposition: "intervene",
    });
  });

  test("is left alone where the profile has no account, or MAAS knows no machine", async () => {
    expect(await probe({ enrollment: EXPIRED, sshUsername: null })).toMatchObject({ state: "in_progress" });
    expect(await probe({ enrollment: EXPIRED, systemId: null })).toMatchObject({ state: "in_progress" });
  });
});

test("nobody signs in while the first token is good, nor before the stage has begun", async () => {
  expect(await probe({ enrollment: RENEWED })).toMatchObject({ state: "in_progress" });
  const expired = { enrollment: EXPIRED, actingAt: null };
  expect(await probe(expired)).toMatchObject({ state: "not_done" });
  expect(await waitForAgentEnrollment.act(contextOf(expired))).toEqual({ effects: [] });
  expect(await waitForAgentEnrollment.act(contextOf({ ...expired, sshUsername: null }))).toMatchObject({
    effects: [{ facts: { enrollment: { issue: 1 } } }],
  });
});

test("the stage lasts longer where the agent may be installed over SSH", () => {
  const timeoutWith = (ssh_username: string | null) =>
    waitForAgentEnrollment.timeoutFor?.({ policy: { ...DEFAULT_POLICY, ssh_username }, node_mode: "maas" });
  expect(timeoutWith("ubuntu")).toBeGreaterThan(2 * Number(timeoutWith(null)));
});
