import { topologyOf } from "../../../src/lifecycles/rack/members.ts";
import type { ProfilePart, RackProfile } from "../../../src/lifecycles/rack/profile.ts";
import type { Rack, RackRequest } from "../../../src/lifecycles/rack/rack.ts";

const part = (count: number): ProfilePart => ({ count, name: null, vendor: null, slotIds: [], watts: null });
export const aProfile: RackProfile = {
  name: "small",
  hardwareType: "gb200",
  topology: "t",
  class: "prod",
  compute: part(1),
  switches: part(1),
  powerShelves: part(1),
};
export const aRequest = (id: string): RackRequest => ({
  id,
  initiator: "pat",
  requested_at: "2026-01-01T00:00:00Z",
  scope: { machine_ids: ["m1"], switch_ids: [], power_shelf_ids: [] },
  activities: [],
});

/** Whole and discovered, unless told otherwise. */
export function wholeRack(state: string, change: Partial<Rack> = {}, carried: object = {}): Rack {
  const whole: Rack = {
    id: "rack-1",
    version: 1,
    basis: 1,
    stateVersion: 1,
    stateSince: new Date(0),
    outcome: null,
    state: { name: state, ...carried },
    profile: aProfile,
    profileId: "small",
    trays: [
      {
        ...{ id: "m1", slot: "1", inMaas: false, ready: true, assigned: "no" },
        ...{ reprovision: "ready", exhausted: false, unprovenRun: null },
      },
    ],
    switches: [{ id: "sw1", state: "ready", trayIndex: 0, hasOs: true, unprovenRun: null }],
    shelves: [{ id: "ps1", state: "ready", power: "on", capacityWatts: 1_000, unprovenRun: null }],
    defaultFirmware: null,
    requestedFirmware: null,
    maintenanceRequest: null,
    reprovisionRequest: null,
    deletedAt: null,
    facts: { topology: null, workSet: null, hasValidated: true, failedByItself: false },
  };
  const changed = { ...whole, ...change };
  return { ...changed, facts: { ...changed.facts, topology: change.facts?.topology ?? topologyOf(changed) } };
}
