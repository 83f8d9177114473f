import type { MachineFacts } from "../../src/lifecycles/machine/machine.ts";

/** The facts of a machine that nobody has looked at yet. */
export const NOTHING_KNOWN: MachineFacts = {
  serial: null,
  systemUuid: null,
  macs: null,
  firmware: null,
  vendor: null,
  model: null,
  bmcFirmware: null,
  certificateFingerprint: null,
  sshHostKey: null,
  sshHostKeySeen: null,
  sshMoved: null,
  powerState: null,
  bootId: null,
  observedAt: null,
  cordoned: null,
  drainScope: null,
  joinedCluster: null,
  leftCluster: null,
  locatorLit: false,
  offOnPurpose: null,
  residue: [],
  residueRecords: [],
};
