import type { DeviceFailure } from "../../../../capabilities/device-failure.ts";
import type { IpmiPower } from "../../../../capabilities/fleet/maas.ts";
import type { MaasMachine } from "../../../../capabilities/fleet/maas-machine.ts";
import { causeOf, messageOf } from "../../../../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../../../../kernel/lifecycle.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import type { FleetMode, FleetNode } from "../../../../lifecycles/fleet-node/fleet-node.ts";
import { DEFAULT_POLICY, type FleetPolicy } from "../../../../lifecycles/fleet-node/policy.ts";
import { mayPass } from "../../../executor/failure-causes.ts";
import type { ProbeReport, StepContext } from "../../../model/step.ts";
import type { MaasOfSite, OnFleetNode } from "../on-fleet-node.ts";

/** A port of the node that gets an address of its own. */
export interface RoceLink {
  /** As MAAS calls it, or its MAC address. */
  readonly port: string;
  readonly subnet: string;
  readonly ipAddress: string;
}

/** What is on record of the machine that the node is. */
export interface KnownIdentity {
  readonly serial: string | null;
  readonly macs: readonly string[];
  /** Where its management controller is, and so where the account on record belongs. Null: nowhere that is on record. */
  readonly bmcAddress: string | null;
}

/** What the stages of an onboarding work with, beside what all steps on fleet nodes do. */
export interface OnOnboarding extends OnFleetNode {
  /** Undefined: none is on record. */
  powerAccount(): Promise<Pick<IpmiPower, "username" | "password"> | undefined>;
  knownIdentity(): Promise<KnownIdentity>;
  /** The live node that is bound to the machine of MAAS; undefined: none but perhaps this one. */
  otherNodeOn(systemId: string): Promise<string | undefined>;
  /** Of this node; empty: nobody has assigned any. */
  roceLinks(): Promise<readonly RoceLink[]>;
  /**
   * The site bootstrap bundle: user data of cloud-init.
   *
   * @throws StepFailure "bundle_missing"
   */
  bundle(name: string): Promise<string>;
}

/** What every stage is given, frozen when the job started. */
export type OnboardingPayload = {
  readonly policy: { readonly [F in keyof FleetPolicy]: FleetPolicy[F] };
  readonly node_mode: FleetMode;
};

export function parseOnboarding(payload: JsonObject): OnboardingPayload {
  const { policy, node_mode } = payload;
  return {
    policy: { ...DEFAULT_POLICY, ...(isJsonObject(policy) && (policy as Partial<FleetPolicy>)) },
    node_mode: node_mode === "manual" ? "manual" : "maas",
  };
}

export type Onboarding = StepContext<OnboardingPayload, never, never, OnOnboarding>;

/** The machine in MAAS that the node is bound to. */
export interface Bound extends MaasOfSite {
  readonly machine: MaasMachine;
}

type Finding = Pick<Onboarding, "maas" | "target" | "call">;

export const nameOf = ({ hostname }: Pick<FleetNode, "hostname">): string => `node ${hostname}`;

export async function findBound({ maas, target: node, call }: Finding): Promise<Bound> {
  const { systemId } = node.facts;
  if (systemId === null)
    throw failedAs(
      "drift_not_adoptable",
      `${nameOf(node)} is bound to no machine in MAAS; run create_or_find_in_maas first`,
      {
        expected: "a bound machine",
        shown: "none",
      },
    );
  const site = await maas();
  const machine = await site.maas.findMachine(site.target, systemId, call);
  if (machine === undefined)
    throw failedAs(
      "machine_deleted_in_maas",
      `MAAS has no machine ${systemId} any more, which ${nameOf(node)} is bound to`,
      {
        name: systemId,
      },
    );
  return { ...site, machine };
}

/** As long as the stage may take, a MAAS that does not answer, or not now, is waited for. */
export async function patiently(look: () => Promise<ProbeReport>): Promise<ProbeReport> {
  try {
    return await look();
  } catch (error) {
    if (!mayPass(error)) throw error;
    return { state: "unknown", message: messageOf(error), cause: causeOf(error) };
  }
}

/** The status does not allow it any more: what MAAS shows now decides what follows. */
export const isWrongStatus = (error: unknown): boolean => (error as Partial<DeviceFailure>)?.status === 409;

export const shownAs = ({ statusName, errorDescription }: MaasMachine): string =>
  errorDescription === null || errorDescription === "" ? statusName : `${statusName}: ${errorDescription}`;
